"""What a model learns from besides labels: unlabelled texts, a teacher, soft labels."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fathomer.cli.output import messages_console
from fathomer.cli.training_data import Splits
from fathomer.errors import ConfigError, FathomerError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fathomer.config import Recipe
    from fathomer.data.reading import ReadOptions
    from fathomer.data.unlabelled import KeptTexts
    from fathomer.train.teacher import Teacher

Unlabelled = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="Unlabelled texts to train word vectors on; corpus: the corpus's own. Repeatable.",
    ),
]
TeacherFolder = Annotated[
    Path | None,
    typer.Option("--teacher", metavar="DIR", help="Hugging Face classifier to learn from."),
]
SoftLabelsFile = Annotated[
    Path | None,
    typer.Option("--soft-labels", metavar="FILE", help="Probabilities to learn from."),
]


class ExtraSources:
    """The unlabelled texts and soft labels of a training run, and what is recorded about them."""

    def __init__(
        self,
        data: str,
        out: Path,
        options: "ReadOptions",
        *,
        unlabelled: Sequence[str] | None,
        teacher: Path | None,
        soft_labels: Path | None,
        data_dir: Path | None,
    ) -> None:
        from fathomer.data.unlabelled import unlabelled_texts

        if teacher and soft_labels:
            raise ConfigError("--teacher and --soft-labels: give one of them")
        self.out, self.options = out, options
        self.names, self.teacher, self.soft_labels = unlabelled or (), teacher, soft_labels
        self.texts: KeptTexts = unlabelled_texts(self.names, data, options, data_dir=data_dir)
        self.recorded: dict[str, Any] = {}

    def __bool__(self) -> bool:
        return bool(self.names or self.teacher or self.soft_labels)

    def used(self, splits: Splits, recipe: "Recipe") -> tuple[Splits, list[Path]]:
        """Return the texts to learn from, and the word vectors that were trained on them.

        The held-out texts are split off first, so that nothing is learned from them.
        """
        if not self:
            return splits, []
        from fathomer.train.prepare import check_soft_labels_allowed
        from fathomer.train.teacher import Teacher

        train = splits.source.train
        if self.teacher or self.soft_labels:
            check_soft_labels_allowed(recipe, multi_label=train.multi_label)
        teacher = Teacher(self.teacher, list(train.label_counts)) if self.teacher else None
        splits = self._with_file(splits)
        splits = _with_held_out(splits, recipe)
        for part in (splits.held_out, splits.test):
            if part is not None:
                self.texts.exclude(part.texts)
        taught = self._with_answers(splits, teacher)  # first, because it finds mistakes at once
        vectors = [self._train_vectors(splits, recipe)] if self.names else []
        return taught, vectors

    def _train_vectors(self, splits: Splits, recipe: "Recipe") -> Path:
        """Train word vectors on the training and the unlabelled texts, unless they exist."""
        from fathomer.text.compact import describe_compact, write_compact
        from fathomer.text.skipgram import SkipgramSettings, train_skipgram

        path = self.out.with_name(f"{self.out.name}.vectors.safetensors")
        settings, digest = SkipgramSettings(seed=recipe.train.seed), sha256()
        digest.update(repr(settings).encode())
        for text in chain(splits.source.train.texts, self.texts):
            digest.update(f"{text}\0".encode("utf-8", "surrogatepass"))
        messages = messages_console()
        messages.print(f"unlabelled: {self.texts.summary()}")
        made = {
            "method": "skip-gram",
            "sources": [Path(name).name for name in self.names],
            "texts": self.texts.kept,
            "left_out": self.texts.left_out,
            "fingerprint": digest.hexdigest()[:16],
            **settings.to_dict(),
        }
        self.recorded["unlabelled"] = made
        try:
            if path.exists() and describe_compact(path)["made"] == made:
                messages.print(f"{path}: word vectors of these texts, trained before")
                return path
        except FathomerError:  # not a file of ours; it is replaced
            pass
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = chain(splits.source.train.texts, self.texts)
        found = train_skipgram(stream, settings, show_progress=messages.is_terminal)
        write_compact(path, found, made)
        messages.print(f"{path}: word vectors of {len(found.words):,} words, trained on them")
        return path

    def _with_file(self, splits: Splits) -> Splits:
        """Add the soft labels of a file to all training texts."""
        from fathomer.data.soft_labels import read_soft_labels, with_soft_labels

        if self.soft_labels is None:
            return splits
        train = splits.source.train
        found = read_soft_labels(
            self.soft_labels,
            list(train.label_counts),
            text_column=self.options.text_column,
            encoding=self.options.encoding,
        )
        if self.names and found.texts is None:
            raise ConfigError(
                f"{self.soft_labels}: needs a column of texts for the unlabelled texts"
            )
        self.found = found
        train = with_soft_labels(train, found.of(train.texts, str(self.soft_labels)))
        self.recorded["soft_labels"] = self.soft_labels.name
        return splits._replace(source=replace(splits.source, train=train))

    def _with_answers(self, splits: Splits, teacher: "Teacher | None") -> Splits:
        """Add soft labels to the unlabelled texts and, from a teacher, to the training texts."""
        from fathomer.data.soft_labels import add_guessed, with_soft_labels

        train, more = splits.source.train, list(self.texts)
        labels = list(train.label_counts)
        soft: NDArray[np.float32]
        if teacher is not None:
            answers = self._ask(teacher, [*train.texts, *more])
            train, soft = with_soft_labels(train, answers[: len(train)]), answers[len(train) :]
        elif self.soft_labels is not None and more:
            soft = self.found.of(more, str(self.soft_labels))
        if train.soft is not None and more:
            train = add_guessed(train, more, soft, labels)
        return splits._replace(source=replace(splits.source, train=train))

    def _ask(self, teacher: "Teacher", texts: list[str]) -> "NDArray[np.float32]":
        from rich.progress import Progress

        messages, folder = messages_console(), teacher.folder
        cache = self.out.with_name(f"{self.out.name}.teacher.jsonl")
        cache.parent.mkdir(parents=True, exist_ok=True)
        messages.print(f"asking {folder} for {len(texts):,} texts; its answers are in {cache}")
        with Progress(console=messages, transient=True, disable=not messages.is_terminal) as bar:
            task = bar.add_task("texts", total=len(texts))
            answers = teacher.answer(
                texts, cache, progress=lambda done: bar.update(task, completed=done)
            )
        record = {"name": folder.name, "fingerprint": teacher.fingerprint, "texts": len(texts)}
        self.recorded["teacher"] = record
        return answers


def _with_held_out(splits: Splits, recipe: "Recipe") -> Splits:
    """Split off held-out texts, unless a file of them is given."""
    from fathomer.data.examples import split_stratified

    if splits.held_out is not None or not recipe.train.held_out:
        return splits
    train, held_out = split_stratified(
        splits.source.train, fraction=recipe.train.held_out, seed=recipe.train.seed
    )
    return splits._replace(source=replace(splits.source, train=train), held_out=held_out)
