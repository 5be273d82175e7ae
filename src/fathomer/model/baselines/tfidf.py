"""TF-IDF of words and word pairs with logistic regression: the first thing to compare with.

All of it is in :mod:`fathomer.model.ngrams`, which other models can mix into their own logits.

    B texts
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, UInt8
from numpy.typing import NDArray
from torch import Tensor

from fathomer.config import ModelConfig
from fathomer.errors import DataError
from fathomer.model.baselines.comparison import DepthlessNetwork
from fathomer.model.graph import WordBatch
from fathomer.model.interface import DirectNetwork, check_names
from fathomer.model.ngrams import LabelledArrays, NgramRegression
from fathomer.text.encode import EncodedTexts


class Tfidf(DepthlessNetwork, DirectNetwork):
    """TF-IDF with logistic regression."""

    def __init__(
        self, config: ModelConfig, *, spellings: UInt8[Tensor, "V C"] | None = None
    ) -> None:
        super().__init__(config)
        self.regression = NgramRegression(config, spellings)

    def learn(
        self,
        texts: EncodedTexts,
        targets: NDArray[np.int64],
        *,
        seed: int,
        weights: NDArray[np.float32] | None = None,
        held_out: LabelledArrays | None = None,
    ) -> None:
        """Fit the model to all texts."""
        self.regression.learn(texts, targets, seed=seed, weights=weights, held_out=held_out)
        if not len(self.regression.keys):
            raise DataError("TF-IDF cannot be trained on these texts: no word occurs often enough")

    def classify(self, batch: WordBatch) -> Float[Tensor, "B labels"]:
        """Return the logits of a batch."""
        logits: Tensor = self.regression(batch)
        return logits

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the fitted tensors; the first version named them without a prefix, and had no share."""
        named = {name.removeprefix("regression."): tensor for name, tensor in tensors.items()}
        named.setdefault("share", self.regression.share)
        check_names(named, dict(self.regression.named_buffers()))
        self.regression.load_tensors(named)
