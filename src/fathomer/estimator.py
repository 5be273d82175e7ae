"""A scikit-learn estimator: ``fit``, ``predict``, ``predict_proba`` on lists of texts."""

import sys
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from fathomer.artifact import Artifact
from fathomer.columns import checked_pairs, checked_texts, checked_validation
from fathomer.config import Recipe
from fathomer.data.datasets import find_vectors
from fathomer.data.examples import Example, Examples
from fathomer.data.soft_labels import check_soft_labels, with_soft_labels
from fathomer.errors import ArtifactError, DataError
from fathomer.prediction import Prediction
from fathomer.predictor import Predictor
from fathomer.recipes import chosen_recipe
from fathomer.train.automatic import automatic_settings, describe, is_direct
from fathomer.train.fit import Watch, fit, unseen_labels
from fathomer.train.folder import check_folder
from fathomer.train.progress import watch_training

CHUNK_TEXTS = 1000
"""Texts per call of the predictor, which keeps the words of all of them in memory."""


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier of texts that selects a depth for every word.

    Without arguments, the settings follow from the texts, as in ``fathomer train``.

    - ``recipe``: a file or name of settings to use instead, such as ``"small"`` or ``"paper"``.
    - ``max_depth``: largest number of steps a word can take.
    - ``hidden_size``: width of the word and sentence states.
    - ``epochs``: passes over the training texts.
    - ``patience``: stop after this many epochs without improvement on the held-out texts.
    - ``seed``: seed of everything random, including the held-out split.
    - ``class_weight``: ``"balanced"``, or a dict of label weights.
    - ``warm_start``: whether a second ``fit`` continues from the first one's weights and vocabulary.
    - ``vectors``: pretrained word vectors, as for ``--vectors``; a list of several is joined.
    - ``verbose``: whether to show the progress; by default, only in an interactive session.
    - ``settings``: any other settings by name, as for ``--set``:
      ``settings={"train.learning_rate": 0.002}``.

    After ``fit``, ``classes_`` holds the labels and ``predictor_`` the :class:`fathomer.Predictor`.

    >>> texts, labels = ["good film", "bad film"] * 8, ["yes", "no"] * 8
    >>> classifier = TextClassifier(max_depth=2, hidden_size=8, epochs=1).fit(texts, labels)
    >>> classifier.predict_proba(["a good film"]).shape
    (1, 2)
    """

    def __init__(
        self,
        *,
        recipe: str | Path | None = None,
        max_depth: int | None = None,
        hidden_size: int | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        seed: int = 0,
        class_weight: str | Mapping[Any, float] | None = None,
        warm_start: bool = False,
        vectors: str | Path | Sequence[str | Path] | None = None,
        verbose: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.recipe = recipe
        self.max_depth = max_depth
        self.hidden_size = hidden_size
        self.epochs = epochs
        self.patience = patience
        self.seed = seed
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.vectors = vectors
        self.verbose = verbose
        self.settings = settings

    def fit(
        self,
        X: Iterable[str],
        y: Iterable[Any] | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        soft_labels: ArrayLike | None = None,
        validation: Any = None,
    ) -> Self:
        """Train on texts ``X`` with labels ``y``; ``sample_weight`` has one weight per text.

        Without ``y``, ``X`` is a table with the columns ``text`` and ``label``. The model is scored
        after every epoch, and calibrated, on ``validation``, a pair of texts and labels or such a
        table, or else on a part of the training texts that is held out. ``soft_labels`` has one row
        per text: a teacher's probabilities of the labels, in the order of ``numpy.unique(y)``.
        """
        texts, labels = checked_pairs(X, y)
        held_out = None if validation is None else _examples(*checked_validation(validation))
        first: Predictor | None = getattr(self, "predictor_", None) if self.warm_start else None
        start = first.artifact if first else None
        examples = self._weighted(texts, labels, sample_weight, soft_labels)
        recipe = self._recipe(examples, start)
        fitted = fit(
            examples,
            recipe,
            held_out=held_out,
            vectors=self._vectors(),
            start=start,
            watch=self._watch(recipe),
        )
        if fitted.interrupted:  # so that Ctrl-C also ends a search over many fits
            raise KeyboardInterrupt
        if first is None:
            self.classes_ = np.unique(labels)
        self._keep(fitted.artifact)
        return self

    def partial_fit(
        self,
        X: Iterable[str],
        y: Iterable[Any] | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train for one pass over new texts, with the vocabulary and the labels of the first call.

        The first call is a ``fit`` and needs texts of all ``classes``. Later calls hold no texts out
        and keep the calibration. The model may forget what the new texts do not show.
        """
        first: Predictor | None = getattr(self, "predictor_", None)
        if first is None:
            missing = np.setdiff1d([] if classes is None else classes, checked_pairs(X, y)[1])
            if len(missing):
                raise DataError(
                    f"no text has the label {missing.tolist()[0]!r}; the first call needs all"
                )
            return self.fit(X, y, sample_weight)
        examples = self._weighted(*checked_pairs(X, y), sample_weight)
        if warning := unseen_labels(first.artifact, examples):
            warnings.warn(warning, stacklevel=2)
        once = {"epochs": 1, "held_out": 0.0, "minutes": 0.0}
        recipe = self._recipe(examples, first.artifact).updated({"train": once})
        self._keep(fit(examples, recipe, start=first.artifact, watch=self._watch(recipe)).artifact)
        return self

    def predict(self, X: Iterable[str]) -> NDArray[Any]:
        """Return the most probable label of each text."""
        best = self.predict_proba(X).argmax(1)  # first, because it checks that the model is fitted
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Iterable[str]) -> NDArray[np.float64]:
        """Return the probability of each label for each text, in the order of ``classes_``."""
        names = [str(label) for label in self._fitted().classes_.tolist()]
        texts = checked_texts(X)
        rows = [
            [answer.probabilities[name] for name in names]
            for start in range(0, len(texts), CHUNK_TEXTS)
            for answer in self.explain(texts[start : start + CHUNK_TEXTS])
        ]
        return np.asarray(rows, dtype=np.float64).reshape(-1, len(names))

    def explain(self, X: Iterable[str]) -> list[Prediction]:
        """Return full predictions: labels, probabilities, and the depth of each word."""
        return self._fitted().predictor_.predict(checked_texts(X))

    def save(self, folder: str | Path) -> None:
        """Save the model to a folder for :meth:`load`, :func:`fathomer.load` or the commands."""
        predictor = self._fitted().predictor_
        check_folder(Path(folder), overwrite=True)
        predictor.artifact.save(Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a saved model; numeric and boolean labels get their type back."""
        artifact = Artifact.load(Path(folder))
        if artifact.recipe.model.multi_label:
            raise ArtifactError(f"{folder}: gives several labels per text; use fathomer.load")
        changed = artifact.recipe.changed_values()
        for name in ("vocab_size", "num_labels", "fixed_words"):  # derived from the data
            changed.pop(f"model.{name}", None)
        defaults = Recipe()
        classifier = cls(
            recipe="paper",  # the defaults: whatever differs from them is set below
            max_depth=changed.pop("model.max_depth", defaults.model.max_depth),
            hidden_size=changed.pop("model.hidden_size", defaults.model.hidden_size),
            epochs=changed.pop("train.epochs", defaults.train.epochs),
            seed=changed.pop("train.seed", defaults.train.seed),
            class_weight=changed.pop("train.class_weight", None),
            settings=changed or None,
        )
        classifier.classes_ = np.asarray(artifact.metrics.get("classes", artifact.labels))
        if sorted(map(str, classifier.classes_.tolist())) != sorted(artifact.labels):
            raise ArtifactError(f"{folder}: the classes in metrics.json do not match the labels")
        classifier.predictor_ = Predictor(artifact)
        return classifier

    def _keep(self, artifact: Artifact) -> None:
        metrics = {**artifact.metrics, "classes": self.classes_.tolist()}
        self.predictor_ = Predictor(replace(artifact, metrics=metrics))

    def _weighted(
        self,
        texts: list[str],
        labels: NDArray[Any],
        sample_weight: ArrayLike | None,
        soft_labels: ArrayLike | None = None,
    ) -> Examples:
        examples = _examples(texts, labels)
        if sample_weight is not None:
            examples = examples.weighted(sample_weight)
        if isinstance(self.class_weight, Mapping):
            weights = compute_sample_weight(dict(self.class_weight), labels)
            before = 1.0 if examples.weights is None else examples.weights
            examples = examples.weighted(weights * before)
        if soft_labels is not None:
            names = [str(label) for label in np.unique(labels).tolist()]
            soft = check_soft_labels(soft_labels, shape=(len(texts), len(names)))
            examples = with_soft_labels(examples, soft[:, np.argsort(names)])
        return examples

    def _vectors(self) -> list[Path]:
        given = [self.vectors] if isinstance(self.vectors, (str, Path)) else self.vectors or ()
        paths = [find_vectors(str(name)) for name in given]
        if paths and self._shows_progress():
            _console().print(f"reading {', '.join(path.name for path in paths)} ...")
        return paths

    def _recipe(self, examples: Examples | None = None, start: Artifact | None = None) -> Recipe:
        """Return the settings: of the recipe, of the model to continue from, or by the texts."""
        if self.recipe is not None:
            return self._changed(chosen_recipe("", str(self.recipe)) or Recipe())
        if start or examples is None:
            return self._changed(start.recipe if start else Recipe())
        recipe, size = automatic_settings(examples, self._changed)
        if self._shows_progress() and not is_direct(recipe.model.name):
            _console().print(describe(recipe, size))
        return recipe

    def _changed(self, recipe: Recipe) -> Recipe:
        """Return a recipe with the settings that were given as parameters."""
        balanced = None if isinstance(self.class_weight, Mapping) else self.class_weight
        given = {
            "model.max_depth": self.max_depth,
            "model.hidden_size": self.hidden_size,
            "train.epochs": self.epochs,
            "train.patience": self.patience,
            "train.seed": self.seed,
            "train.class_weight": "none" if balanced is None else balanced,
        }
        chosen = {name: value for name, value in given.items() if value is not None}
        return recipe.with_values(chosen | dict(self.settings or {}))

    def _shows_progress(self) -> bool:
        return hasattr(sys, "ps1") if self.verbose is None else bool(self.verbose)

    def _watch(self, recipe: Recipe) -> Watch:
        return watch_training(recipe, _console()) if self._shows_progress() else iter

    def _fitted(self) -> Self:
        check_is_fitted(self, "predictor_")
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Pickle a fitted model as the bytes of its saved files, not as Python objects."""
        state = dict(super().__getstate__())
        if "predictor_" in state:
            state["predictor_"] = self.predictor_.artifact.to_files()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "predictor_" in state:
            with tempfile.TemporaryDirectory() as folder:
                for name, content in state["predictor_"].items():
                    Path(folder, name).write_bytes(content)
                self.predictor_ = Predictor(Artifact.load(Path(folder)))


def _examples(texts: list[str], labels: NDArray[Any]) -> Examples:
    pairs = zip(texts, labels.tolist(), strict=True)
    return Examples([Example(text, str(label)) for text, label in pairs])


def _console() -> Console:
    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
