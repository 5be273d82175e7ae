"""The classifier as scikit-learn knows classifiers: ``fit``, ``predict``, ``predict_proba``."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fathomer.config import Recipe
from fathomer.data.examples import Example, Examples
from fathomer.errors import DataError
from fathomer.fit import fit
from fathomer.predictor import Prediction, Predictor, checked_texts


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify texts, reading each word as deep as it needs.

    ``settings`` changes any other setting by its name, as ``--set`` does on the command line:
    ``settings={"train.learning_rate": 0.002}``.

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
        vectors: str | Path | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.hidden_size = hidden_size
        self.epochs = epochs
        self.seed = seed
        self.vectors = vectors
        self.settings = settings

    def fit(self, X: Iterable[str], y: Iterable[Any]) -> Self:
        """Learn from texts and their labels."""
        texts, classes = checked_texts(X), np.asarray(list(y))
        if len(texts) != len(classes):
            raise DataError(f"{len(texts)} texts, but {len(classes)} labels")
        self.classes_ = np.unique(classes)
        pairs = zip(texts, classes.tolist(), strict=True)
        examples = Examples([Example(text, str(label)) for text, label in pairs])
        vectors = Path(self.vectors) if self.vectors else None
        fitted = fit(examples, self._recipe(), vectors=vectors)
        if fitted.interrupted:  # a search over many fits must end too
            raise KeyboardInterrupt
        self.predictor_ = Predictor(fitted.artifact)
        return self

    def predict(self, X: Iterable[str]) -> NDArray[Any]:
        """Give the most probable label of each text."""
        probabilities = self.predict_proba(X)
        best: NDArray[Any] = self.classes_[probabilities.argmax(1)]
        return best

    def predict_proba(self, X: Iterable[str]) -> NDArray[np.float64]:
        """Give the probabilities of the labels, in the order of ``classes_``."""
        names = [str(label) for label in self._fitted().classes_.tolist()]
        rows = [[p.probabilities[name] for name in names] for p in self.explain(X)]
        return np.asarray(rows, dtype=np.float64).reshape(-1, len(names))

    def explain(self, X: Iterable[str]) -> list[Prediction]:
        """Give the full answers: labels, probabilities, and how deep each word was read."""
        return self._fitted().predictor_.predict(checked_texts(X))

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder, for :func:`fathomer.load` and the command line."""
        self._fitted().predictor_.artifact.save(Path(folder))

    def _recipe(self) -> Recipe:
        recipe = Recipe().updated(
            {
                "model": {"max_depth": self.max_depth, "hidden_size": self.hidden_size},
                "train": {"epochs": self.epochs, "seed": self.seed},
            }
        )
        return recipe.with_values(self.settings or {})

    def _fitted(self) -> Self:
        check_is_fitted(self, "predictor_")
        return self
