"""Verification of an exported graph: its answers must be those of the predictor."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

import numpy as np
import onnxruntime

from fathomer.artifact import Artifact
from fathomer.errors import ExportError
from fathomer.predictor import Predictor
from fathomer.text.encode import EncodedTexts, PackedWords

TOLERANCE = 1e-4
"""Largest accepted difference of a probability."""


class Verified(NamedTuple):
    """The extent and the result of a comparison."""

    batches: int
    texts: int
    largest_difference: float


def verify(content: bytes, predictor: Predictor) -> Verified:
    """Compare the answers of a graph with the predictor's; raise an error if they differ."""
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    artifact = predictor.artifact
    batches = list(sample_batches(artifact.tokenizer.vocabulary, known_pairs(artifact)))
    differences = [_difference(session, texts, predictor) for texts in batches]
    return Verified(len(batches), sum(map(len, batches)), max(differences))


def _difference(
    session: "onnxruntime.InferenceSession", texts: list[str], predictor: Predictor
) -> float:
    """Return the largest difference of a probability; raise an error if it is too large."""
    probabilities, depths = session.run(None, pack_texts(texts, predictor.artifact)._asdict())
    expected = predictor.predict(texts)
    rows = np.array([list(answer.probabilities.values()) for answer in expected])
    difference = float(np.abs(probabilities - rows).max())
    same_depths = depths.tolist() == [word.depth for answer in expected for word in answer.words]
    if not (difference <= TOLERANCE and same_depths):  # written so that nan fails, too
        what = f"probabilities differ by {difference:.2g}" if same_depths else "depths differ"
        raise ExportError(
            f"the answers of the graph are not the predictor's ({what} in a batch of "
            f"{len(texts)} texts); nothing was written"
        )
    return difference


def pack_texts(texts: list[str], artifact: Artifact) -> PackedWords:
    """Encode texts as inputs of the graph."""
    config = artifact.recipe.text
    words = artifact.tokenizer.encode(texts, max_words=config.max_words)
    return EncodedTexts.from_words(words, max_chars=config.max_chars).pack(range(len(texts)))


def known_pairs(artifact: Artifact) -> list[str]:
    """Return up to about a thousand word pairs that the n-grams know, which random words never hit."""
    ngrams = artifact.network.ngrams
    if ngrams is None:
        return []
    words, size = artifact.tokenizer.vocabulary, ngrams.vocab_size
    keys = ngrams.keys[ngrams.keys >= size]
    chosen = keys[:: max(1, len(keys) // 1000)].tolist()
    return [f"{words[key % size]} {words[key // size - 1]}" for key in chosen]


def sample_batches(vocabulary: list[str], pairs: Sequence[str] = ()) -> Iterator[list[str]]:
    """Generate texts of all lengths, of known and unknown words, alone and in batches.

    If ``pairs`` of words are given, there are also texts that consist of these, some repeatedly.
    """
    random = Random(0)  # noqa: S311 (not used for security)
    unknown = ["Qzxv", "häßlichst", "知らない", "🦜", "x" * 400]

    def text(words: int) -> str:
        return " ".join(random.choice(random.choice([vocabulary, unknown])) for _ in range(words))

    yield [""]
    yield ["", ""]
    yield [text(1)]
    yield unknown
    yield [text(300)]
    yield [text(2), "", text(40), text(1)]
    yield [text(random.randrange(25)) for _ in range(33)]
    if pairs:
        yield [" ".join(random.choices(pairs, k=1 + number) * 2) for number in range(6)]
