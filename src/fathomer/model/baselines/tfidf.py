"""TF-IDF of words and word pairs with logistic regression: the first thing to compare with.

Salton and Buckley, 1988, "Term-Weighting Approaches in Automatic Text Retrieval":

    x_k = (1 + ln n_k) idf_k, normalised to length 1   n_k: count of word or pair k in the text
    idf_k = ln((1 + texts) / (1 + texts with k)) + 1   smoothed as in scikit-learn
    y = softmax(W x + b)

scikit-learn fits the model; the result is kept as tensors, so that it is saved, loaded and used like
every other model. As in scikit-learn's ``TfidfVectorizer``, case is ignored, and so are words with
fewer than two letters or digits, and words unknown to the tokenizer. ``C`` is scikit-learn's default
of 1; ``docs/log.md`` shows the effect of other values.

    K known words and pairs, B texts, V vocabulary; a pair (a, b) has the key (b + 1) V + a
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from numpy.typing import NDArray
from torch import Tensor

from fathomer.config import ModelConfig
from fathomer.errors import DataError
from fathomer.model.baselines.comparison import Depthless
from fathomer.model.baselines.spelling import vocabulary_spellings
from fathomer.model.graph import WordBatch
from fathomer.model.interface import DirectNetwork
from fathomer.text.encode import EncodedTexts

UNSEEN = -20.0
"""Bias of a label without training texts."""


class Tfidf(Depthless, DirectNetwork):
    """TF-IDF with logistic regression."""

    forms: Tensor
    keys: Tensor
    idf: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        config: ModelConfig,
        *,
        spellings: UInt8[Tensor, "V C"] | None = None,
    ) -> None:
        super().__init__(config)
        self.register_buffer("forms", _forms(vocabulary_spellings(config, spellings)))
        self.register_buffer("keys", torch.zeros(0, dtype=torch.long))
        self.register_buffer("idf", torch.zeros(0))
        self.register_buffer("weight", torch.zeros(0, config.num_labels))
        self.register_buffer("bias", torch.zeros(config.num_labels))

    def learn(
        self,
        texts: EncodedTexts,
        targets: NDArray[np.int64],
        *,
        seed: int,
        weights: NDArray[np.float32] | None = None,
    ) -> None:
        """Fit the model to all texts."""
        from scipy.sparse import csr_matrix
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.linear_model import LogisticRegression

        text_of, keys = self.pairs(
            torch.from_numpy(np.repeat(np.arange(len(texts)), texts.lengths)),
            torch.from_numpy(texts.ids.astype(np.int64)),
        )
        if not len(keys):
            raise DataError("TF-IDF cannot be trained on these texts: no word occurs often enough")
        known, columns = torch.unique(keys, return_inverse=True)
        ones = np.ones(len(keys), dtype=np.float32)
        counts = csr_matrix((ones, (text_of, columns)), shape=(len(texts), len(known)))
        transformer: Any = TfidfTransformer(sublinear_tf=True)
        features = transformer.fit_transform(counts)
        regression: Any = LogisticRegression(max_iter=1000, random_state=seed % 2**32)
        if self.config.multi_label:
            weight, bias = _sigmoid_weights(regression, features, targets, weights)
        else:
            regression.fit(features, targets, sample_weight=weights)
            weight, bias = _softmax_weights(regression, self.config.num_labels)
        learned = {
            "keys": known,
            "idf": torch.tensor(transformer.idf_),
            "weight": weight,
            "bias": bias,
        }
        self.load_tensors({"forms": self.forms, **learned})

    def pairs(
        self, text_of: Int[Tensor, " N"], words: Int[Tensor, " N"]
    ) -> tuple[Int[Tensor, " found"], Int[Tensor, " found"]]:
        """Return text and key of every word that is used, and of every pair of adjacent ones."""
        words = torch.where(words >= 0, self.forms[words.clamp(min=0)], -1)
        text_of, words = text_of[words >= 0], words[words >= 0]
        both = text_of[:-1] == text_of[1:]
        keys = (words[1:] + 1) * self.config.vocab_size + words[:-1]
        return torch.cat([text_of, text_of[:-1][both]]), torch.cat([words, keys[both]])

    def classify(self, batch: WordBatch) -> Float[Tensor, "B labels"]:
        """Return the logits of a batch."""
        logits = self.bias.repeat(batch.num_texts, 1)
        if len(self.keys):
            logits = logits + self.weigh(*self.pairs(batch.text_of, batch.words), batch.num_texts)
        return logits

    def weigh(
        self, text_of: Int[Tensor, " found"], keys: Int[Tensor, " found"], num_texts: int
    ) -> Float[Tensor, "B labels"]:
        """Return the sums over each text of its normalised TF-IDF values times their weights."""
        columns = torch.searchsorted(self.keys, keys).clamp(max=len(self.keys) - 1)
        known = self.keys[columns] == keys
        both = text_of[known] * len(self.keys) + columns[known]
        distinct, counts = torch.unique(both, return_counts=True)
        text_of, columns = distinct // len(self.keys), distinct % len(self.keys)
        values = (1 + counts.to(self.idf.dtype).log()) * self.idf[columns]
        squares = values.new_zeros(num_texts).index_add(0, text_of, values * values)
        values = values / squares.sqrt()[text_of]
        sums: Tensor = values.new_zeros(num_texts, self.config.num_labels)
        return sums.index_add(0, text_of, values[:, None] * self.weight[columns])

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the fitted tensors, whose sizes were not known before."""
        for name, buffer in self.named_buffers():
            setattr(self, name, tensors[name].to(buffer.dtype).contiguous())


def _forms(spellings: UInt8[Tensor, "V C"]) -> Int[Tensor, " V"]:
    """Map each word to the first one with the same lower-case form; -1 for words not used."""
    first: dict[str, int] = {}
    forms = torch.full((len(spellings),), -1)
    if forms.is_meta:  # only shapes are needed
        return forms
    for word, row in enumerate(spellings.cpu().numpy()):
        name = row.tobytes().rstrip(b"\0").decode("utf-8", "replace").lower()
        if re.search(r"\w\w", name):
            forms[word] = first.setdefault(name, word)
    return forms


def _softmax_weights(regression: Any, num_labels: int) -> tuple[Tensor, Tensor]:
    """Return one column per label; for two labels, scikit-learn has only the second one's."""
    weight, bias = regression.coef_, regression.intercept_
    if len(regression.classes_) == 2:
        weight, bias = np.concatenate([0 * weight, weight]), np.concatenate([0 * bias, bias])
    columns, biases = np.zeros((weight.shape[1], num_labels)), np.full(num_labels, UNSEEN)
    columns[:, regression.classes_] = weight.T
    biases[regression.classes_] = bias
    return torch.from_numpy(columns), torch.from_numpy(biases)


def _sigmoid_weights(
    regression: Any, features: Any, targets: NDArray[np.int64], weights: NDArray[np.float32] | None
) -> tuple[Tensor, Tensor]:
    """Fit each label by itself, except those that all texts or no texts have."""
    columns = np.zeros((features.shape[1], targets.shape[1]))
    biases = np.where(targets.all(0), -UNSEEN, UNSEEN)
    for label, true in enumerate(targets.T):
        if 0 < true.sum() < len(true):
            regression.fit(features, true, sample_weight=weights)
            columns[:, label], biases[label] = regression.coef_[0], regression.intercept_[0]
    return torch.from_numpy(columns), torch.from_numpy(biases)
