"""The plain baseline: TF-IDF of words and word pairs with logistic regression (scikit-learn).

It sees which words a text has, and which stand side by side, but not what they make together.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fathomer.data.examples import Examples
from fathomer.errors import DataError
from fathomer.nn.inference import Classified
from fathomer.training.metrics import Metrics, score


class TfidfBaseline:
    """Classify texts by their words and word pairs."""

    def __init__(self, *, seed: int = 0) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        self.pipeline: Any = make_pipeline(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
            LogisticRegression(max_iter=1000, random_state=seed % 2**32),
        )

    def fit(self, examples: Examples) -> "TfidfBaseline":
        """Learn from labelled texts."""
        try:
            self.pipeline.fit([e.text for e in examples], [e.label for e in examples])
        except ValueError as error:  # no word of two letters anywhere
            raise DataError(f"TF-IDF cannot be trained on these texts ({error})") from None
        return self

    @property
    def labels(self) -> list[str]:
        """Name the labels, in the order of the probabilities."""
        return [str(label) for label in self.pipeline.classes_]

    def log_probabilities(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Give one row per text, one column per label."""
        found: NDArray[np.float32] = self.pipeline.predict_log_proba(texts).astype(np.float32)
        return found

    def evaluate(self, examples: Examples) -> Metrics:
        """Score the baseline on labelled texts; it reads no word at any depth."""
        number = {label: index for index, label in enumerate(self.labels)}
        targets = np.asarray([number[e.label] for e in examples], dtype=np.int64)
        answers = Classified(
            self.log_probabilities([e.text for e in examples]), np.zeros(0, dtype=np.int16)
        )
        return score(answers, targets, self.labels)
