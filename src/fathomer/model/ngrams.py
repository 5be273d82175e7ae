"""TF-IDF of words and word pairs with logistic regression, as a part of a network or by itself.

Salton and Buckley, 1988, "Term-Weighting Approaches in Automatic Text Retrieval":

    x_k = (1 + ln n_k) idf_k, normalised to length 1   n_k: count of word or pair k in the text
    idf_k = ln((1 + texts) / (1 + texts with k)) + 1   smoothed as in scikit-learn
    y = W x + b

scikit-learn fits the model; the result is kept as tensors, so that it is saved, loaded and used like
every other layer. As in scikit-learn's ``TfidfVectorizer``, case is ignored, and so are words with
fewer than two letters or digits, and words unknown to the tokenizer.

    K known words and pairs, B texts, V vocabulary; a pair (a, b) has the key (b + 1) V + a
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from numpy.typing import NDArray
from torch import Tensor, nn

from fathomer.config import ModelConfig
from fathomer.model.graph import WordBatch
from fathomer.model.spelling import vocabulary_spellings
from fathomer.text.encode import EncodedTexts

PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0)
"""Values of scikit-learn's ``C`` to choose from."""
DEFAULT_PENALTY = 10.0
"""``C`` if there are no texts to choose it on, or so many that each fit takes long."""
MANY_TEXTS = 10_000
"""From here on, ``C`` is not searched for, and what occurs in a single text is left out."""
SHARE = 0.5
"""Share of the n-grams in the logits of a network, unless it is tuned on held-out texts."""
UNSEEN = -20.0
"""Bias of a label without training texts."""


LabelledArrays = tuple[EncodedTexts, NDArray[np.int64]]
"""Texts, and their labels as numbers; one column per label if texts have several."""


class NgramRegression(nn.Module):
    """TF-IDF with logistic regression."""

    forms: Tensor
    keys: Tensor
    idf: Tensor
    weight: Tensor
    bias: Tensor
    share: Tensor

    def __init__(self, config: ModelConfig, spellings: UInt8[Tensor, "V C"] | None = None) -> None:
        super().__init__()
        self.vocab_size = config.vocab_size
        self.register_buffer("forms", _forms(vocabulary_spellings(config, spellings)))
        self.register_buffer("keys", torch.zeros(0, dtype=torch.long))
        self.register_buffer("idf", torch.zeros(0))
        self.register_buffer("weight", torch.zeros(0, config.num_labels))
        self.register_buffer("bias", torch.zeros(config.num_labels))
        self.register_buffer("share", torch.tensor(SHARE))

    def learn(
        self,
        texts: EncodedTexts,
        targets: NDArray[np.int64],
        *,
        seed: int,
        weights: NDArray[np.float32] | None = None,
        held_out: LabelledArrays | None = None,
    ) -> None:
        """Fit the model, with the ``C`` that gives the smallest loss on the held-out texts.

        If the texts have no words to use, there are no ``keys`` afterwards, and the share is 0.
        """
        from sklearn.feature_extraction.text import TfidfTransformer

        text_of, keys = self.ngrams_of(texts)
        known = _known_keys(text_of, keys, num_texts=len(texts))
        if not len(known):
            self.share.zero_()
            return
        transformer: Any = TfidfTransformer(sublinear_tf=True)
        features = transformer.fit_transform(_counts(text_of, keys, known, len(texts)))

        unseen = None
        if held_out is not None:
            counts = _counts(*self.ngrams_of(held_out[0]), known, len(held_out[0]))
            unseen = transformer.transform(counts), held_out[1]
        weight, bias = fit_regression(
            features, targets, len(self.bias), seed=seed, weights=weights, held_out=unseen
        )
        self.load_tensors(
            {
                "forms": self.forms,
                "share": self.share,
                "keys": known,
                "idf": torch.tensor(transformer.idf_),
                "weight": torch.from_numpy(weight),
                "bias": torch.from_numpy(bias),
            }
        )

    def ngrams_of(self, texts: EncodedTexts) -> tuple[Tensor, Tensor]:
        """Return text and key of every word and pair of many texts."""
        text_of = np.repeat(np.arange(len(texts)), texts.lengths)
        ids = torch.from_numpy(texts.ids.astype(np.int64))
        return self.pairs(torch.from_numpy(text_of), ids)

    def pairs(
        self, text_of: Int[Tensor, " N"], words: Int[Tensor, " N"]
    ) -> tuple[Int[Tensor, " found"], Int[Tensor, " found"]]:
        """Return text and key of every word that is used, and of every pair of adjacent ones."""
        words = torch.where(words >= 0, self.forms[words.clamp(min=0)], -1)
        text_of, words = text_of[words >= 0], words[words >= 0]
        both = text_of[:-1] == text_of[1:]
        keys = (words[1:] + 1) * self.vocab_size + words[:-1]
        return torch.cat([text_of, text_of[:-1][both]]), torch.cat([words, keys[both]])

    def forward(self, batch: WordBatch) -> Float[Tensor, "B labels"]:
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
        sums: Tensor = values.new_zeros(num_texts, self.weight.shape[1])
        return sums.index_add(0, text_of, values[:, None] * self.weight[columns])

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Load fitted tensors, whose sizes were not known before; raise ValueError if they do not fit."""
        buffers = dict(self.named_buffers())
        for name in buffers:
            if name not in tensors:
                raise ValueError(f"the tensor {name} of the n-grams is missing")
        found = {name: tensors[name].to(buffer.dtype) for name, buffer in buffers.items()}
        self._check(found)
        for name, tensor in found.items():
            setattr(self, name, tensor.contiguous())

    def _check(self, tensors: Mapping[str, Tensor]) -> None:
        """Raise ValueError if tensors do not fit together, or their values are out of range."""
        known, labels, vocabulary = len(tensors["keys"].flatten()), len(self.bias), self.vocab_size
        shapes = {
            "forms": (vocabulary,),
            "keys": (known,),
            "idf": (known,),
            "weight": (known, labels),
            "bias": (labels,),
            "share": (),
        }
        for name, shape in shapes.items():
            if tensors[name].shape != shape:
                raise ValueError(f"the tensor {name} of the n-grams is not of shape {shape}")
        keys, forms = tensors["keys"], tensors["forms"]
        in_range = (keys >= 0).all() and (keys < (vocabulary + 1) * vocabulary).all()
        if not in_range or (keys.diff() <= 0).any():
            raise ValueError("the keys of the n-grams are not sorted or out of range")
        if (forms < -1).any() or (forms >= vocabulary).any() or not 0 <= tensors["share"] <= 1:
            raise ValueError("the n-grams have values that are out of range")


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


def _known_keys(text_of: Tensor, keys: Tensor, *, num_texts: int) -> Int[Tensor, " K"]:
    """Return the sorted keys to use: all, or of many texts those that several of them have."""
    if num_texts < MANY_TEXTS:
        distinct: Tensor = torch.unique(keys)
        return distinct
    in_texts = torch.unique(keys * num_texts + text_of) // num_texts  # once for each text
    distinct, counts = torch.unique_consecutive(in_texts, return_counts=True)
    return distinct[counts > 1]


def _counts(text_of: Tensor, keys: Tensor, known: Tensor, num_texts: int) -> Any:
    """Return the number of times that each known key occurs in each text, as a sparse matrix."""
    from scipy.sparse import csr_matrix

    columns = torch.searchsorted(known, keys).clamp(max=len(known) - 1)
    found = known[columns] == keys
    ones = np.ones(int(found.sum()), dtype=np.float32)
    return csr_matrix((ones, (text_of[found], columns[found])), shape=(num_texts, len(known)))


def fit_regression(
    features: Any,
    targets: NDArray[np.int64],
    num_labels: int,
    *,
    seed: int,
    weights: NDArray[np.float32] | None = None,
    held_out: tuple[Any, NDArray[np.int64]] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights and biases of a logistic regression, one column per label.

    Its ``C`` is the one that gives the smallest loss on the ``held_out`` features and targets.
    """
    from sklearn.linear_model import LogisticRegression

    def fitted(penalty: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        regression: Any = LogisticRegression(C=penalty, max_iter=1000, random_state=seed % 2**32)
        if targets.ndim == 2:
            return _sigmoid_weights(regression, features, targets, weights)
        regression.fit(features, targets, sample_weight=weights)
        return _softmax_weights(regression, num_labels)

    if held_out is None or len(targets) >= MANY_TEXTS:
        return fitted(DEFAULT_PENALTY)
    tests, truth = held_out
    found = [fitted(penalty) for penalty in PENALTIES]
    return min(found, key=lambda pair: _loss(tests @ pair[0] + pair[1], truth))


def _softmax_weights(
    regression: Any, num_labels: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return one column per label; for two labels, scikit-learn has only the second one's."""
    weight, bias = regression.coef_, regression.intercept_
    if len(regression.classes_) == 2:
        weight, bias = np.concatenate([0 * weight, weight]), np.concatenate([0 * bias, bias])
    columns, biases = np.zeros((weight.shape[1], num_labels)), np.full(num_labels, UNSEEN)
    columns[:, regression.classes_] = weight.T
    biases[regression.classes_] = bias
    return columns, biases


def _sigmoid_weights(
    regression: Any, features: Any, targets: NDArray[np.int64], weights: NDArray[np.float32] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit each label by itself, except those that all texts or no texts have."""
    columns = np.zeros((features.shape[1], targets.shape[1]))
    biases = np.where(targets.all(0), -UNSEEN, UNSEEN)
    for label, true in enumerate(targets.T):
        if 0 < true.sum() < len(true):
            regression.fit(features, true, sample_weight=weights)
            columns[:, label], biases[label] = regression.coef_[0], regression.intercept_[0]
    return columns, biases


def _loss(logits: NDArray[np.float64], targets: NDArray[np.int64]) -> float:
    """Return the mean cross entropy, or binary cross entropy if texts have several labels."""
    if targets.ndim == 2:
        return float(np.mean(np.logaddexp(0, logits) - targets * logits))
    highest = logits.max(1, keepdims=True)
    totals = highest[:, 0] + np.log(np.exp(logits - highest).sum(1))
    return float(np.mean(totals - logits[np.arange(len(targets)), targets]))
