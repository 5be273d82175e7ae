"""A scikit-learn estimator: ``fit``, ``predict``, ``predict_proba`` on lists of texts."""

import math
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, assert_all_finite, column_or_1d, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from fathomer.artifact import Artifact
from fathomer.config import Recipe
from fathomer.data.datasets import find_vectors
from fathomer.data.examples import Example, Examples
from fathomer.data.soft_labels import check_soft_labels, with_soft_labels
from fathomer.errors import ArtifactError, DataError
from fathomer.predictor import Prediction, Predictor, checked_texts
from fathomer.train.fit import check_folder, fit

CHUNK_TEXTS = 1000
"""Texts per call of the predictor, which keeps the words of all of them in memory."""


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier of texts that selects a depth for every word.

    - ``max_depth``: largest number of steps a word can take.
    - ``hidden_size``: width of the word and sentence states.
    - ``epochs``: passes over the training texts.
    - ``seed``: seed of everything random, including the held-out split.
    - ``class_weight``: ``"balanced"``, or a dict of label weights.
    - ``warm_start``: whether a second ``fit`` continues from the first one's weights and vocabulary.
    - ``vectors``: pretrained word vectors, as for ``--vectors``; a list of several is joined.
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
        max_depth: int = 9,
        hidden_size: int = 400,
        epochs: int = 10,
        seed: int = 0,
        class_weight: str | Mapping[Any, float] | None = None,
        warm_start: bool = False,
        vectors: str | Path | Sequence[str | Path] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.hidden_size = hidden_size
        self.epochs = epochs
        self.seed = seed
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.vectors = vectors
        self.settings = settings

    def fit(
        self,
        X: Iterable[str],
        y: Iterable[Any],
        sample_weight: ArrayLike | None = None,
        soft_labels: ArrayLike | None = None,
    ) -> Self:
        """Train on texts ``X`` with labels ``y``; ``sample_weight`` has one weight per text.

        ``soft_labels`` has one row per text: a teacher's probabilities of the labels, in the order of
        ``numpy.unique(y)``.
        """
        texts, labels = checked_texts(X), _checked_labels(y)
        if len(texts) != len(labels):
            raise DataError(
                f"{len(texts)} texts, but {len(labels)} labels; expected one label per text"
            )
        first: Predictor | None = getattr(self, "predictor_", None) if self.warm_start else None
        fitted = fit(
            self._examples(texts, labels, sample_weight, soft_labels),
            self._recipe(),
            vectors=self._vectors(),
            start=first.artifact if first else None,
        )
        if fitted.interrupted:  # so that Ctrl-C also ends a search over many fits
            raise KeyboardInterrupt
        if first is None:
            self.classes_ = np.unique(labels)
        metrics = {**fitted.artifact.metrics, "classes": self.classes_.tolist()}
        self.predictor_ = Predictor(replace(fitted.artifact, metrics=metrics))
        return self

    def predict(self, X: Iterable[str]) -> NDArray[Any]:
        """Return the most probable label of each text."""
        probabilities = self.predict_proba(X)
        best: NDArray[Any] = self.classes_[probabilities.argmax(1)]
        return best

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
        artifact = self._fitted().predictor_.artifact
        check_folder(Path(folder), resume=False)
        artifact.save(Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a saved model; numeric and boolean labels get their type back."""
        artifact = Artifact.load(Path(folder))
        if artifact.recipe.model.multi_label:
            raise ArtifactError(
                f"{folder}: the model gives several labels per text; use fathomer.load"
            )
        changed = artifact.recipe.changed_values()
        for name in ("vocab_size", "num_labels", "fixed_words"):  # derived from the data
            changed.pop(f"model.{name}", None)
        defaults = Recipe()
        classifier = cls(
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

    def _examples(
        self,
        texts: list[str],
        labels: NDArray[Any],
        sample_weight: ArrayLike | None,
        soft_labels: ArrayLike | None,
    ) -> Examples:
        pairs = zip(texts, labels.tolist(), strict=True)
        examples = Examples([Example(text, str(label)) for text, label in pairs])
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
        return [find_vectors(str(name)) for name in given]

    def _recipe(self) -> Recipe:
        balanced = None if isinstance(self.class_weight, Mapping) else self.class_weight
        recipe = Recipe().updated(
            {
                "model": {"max_depth": self.max_depth, "hidden_size": self.hidden_size},
                "train": {
                    "epochs": self.epochs,
                    "seed": self.seed,
                    "class_weight": "none" if balanced is None else balanced,
                },
            }
        )
        return recipe.with_values(self.settings or {})

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


def _checked_labels(y: Iterable[Any]) -> NDArray[Any]:
    """Return labels as a one-dimensional array; raise an error if any is missing."""
    if y is None:
        raise DataError("TextClassifier requires y to be passed, but the target y is None")
    given = y if hasattr(y, "__array__") else list(y)
    if (
        getattr(given, "dtype", None) != np.float64
    ):  # NaN in float arrays is reported by scikit-learn below
        for number, label in enumerate(given):
            if label is None or _is_nan(label) or (isinstance(label, str) and not label.strip()):
                raise DataError(f"label {number} is missing ({label!r})")
    labels: NDArray[Any] = column_or_1d(given, warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def _is_nan(label: Any) -> bool:
    return isinstance(label, float) and math.isnan(label)
