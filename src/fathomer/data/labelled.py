"""Labelled texts as numbers: encoded words, and the index of each label."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from fathomer.config import TextConfig
from fathomer.data.examples import Examples
from fathomer.errors import DataError, did_you_mean
from fathomer.text.encode import EncodedTexts
from fathomer.text.tokenizer import Tokenizer

MOST_UNKNOWN = 0.5
"""Largest share of texts with unknown labels that are left out; with more, it is an error."""
_CHUNK = 1000
"""Texts tokenized at a time: enough to keep all cores busy, few enough to fit in memory."""


@dataclass(frozen=True)
class LabelledTexts:
    """Encoded texts with their labels."""

    texts: EncodedTexts
    targets: NDArray[np.int64]
    """Index of each text's label; for multi-label data, one row of zeros and ones per text."""
    weights: NDArray[np.float32] | None = None
    """Weight of each text in the training loss, 1 on average."""
    depths: NDArray[np.int16] | None = None
    """Target depth of each word, one text after another, if depth is supervised."""
    soft: NDArray[np.float32] | None = None
    """Soft labels: one probability per label."""
    given: NDArray[np.bool_] | None = None
    """With soft labels, whether a text has its own label, too."""

    def __len__(self) -> int:
        return len(self.targets)


def encode_examples(
    examples: Examples, tokenizer: Tokenizer, labels: Sequence[str], config: TextConfig
) -> LabelledTexts:
    """Encode texts and labels; a label outside ``labels`` is an error."""
    check_labels(examples, labels)
    index_of = {label: index for index, label in enumerate(labels)}
    if examples.multi_label:
        targets = np.zeros((len(examples), len(labels)), dtype=np.int64)
        for row, found in enumerate(examples.label_sets):
            targets[row, [index_of[label] for label in found]] = 1
    else:
        targets = np.fromiter(map(index_of.__getitem__, examples.labels), dtype=np.int64)
    texts = encode_texts((example.text for example in examples), tokenizer, config)
    return LabelledTexts(texts, targets, soft=examples.soft, given=examples.given)


def check_labels(examples: Examples, labels: Collection[str]) -> None:
    """Raise an error if the examples have a label that is not in the training set."""
    unknown = sorted(set(examples.label_counts) - set(labels))
    if unknown:
        count = examples.label_counts[unknown[0]]
        raise DataError(
            f"label {unknown[0]!r} does not occur in the training data, but in {count:,} of "
            f"{len(examples):,} examples here; {did_you_mean(unknown[0], labels)}"
        )


def known_only(examples: Examples, labels: Collection[str]) -> Examples:
    """Leave out, and count, the examples with a label that is not in the training set.

    It is an error if these are most of them: then the column or the file is probably wrong.
    """
    known = set(labels)
    kept = [index for index, found in enumerate(examples.label_sets) if known.issuperset(found)]
    unknown = len(examples) - len(kept)
    if unknown > MOST_UNKNOWN * len(examples):
        check_labels(examples, labels)
    if not unknown:
        return examples
    skipped = {**examples.skipped, "unknown label": unknown}
    return replace(examples.take(kept), skipped=skipped)


def encode_texts(texts: Iterable[str], tokenizer: Tokenizer, config: TextConfig) -> EncodedTexts:
    """Tokenize texts and look up their words, one chunk at a time to bound memory."""
    stream = iter(texts)
    chunks = iter(lambda: list(islice(stream, _CHUNK)), [])
    words = (w for chunk in chunks for w in tokenizer.encode(chunk, max_words=config.max_words))
    return EncodedTexts.from_words(words, max_chars=config.max_chars)
