"""Synthetic texts and depths: reproducible, with the statistics of real corpora.

The constants below were fitted to the training texts of IMDB and TREC, as split by Fathomer's
tokenizer (punctuation marks are words, at most 2,000 words per text):

    lengths     mean and deviation of the logarithm; shortest and longest text
    words       random batches of 1, 32 and 280 texts of IMDB have 159, 2,163 and 9,315 distinct words;
                1 / (rank + 2.7)^1.2 over 30,000 words gives 162, 2,258 and 9,443 for as many words
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from fathomer.model import WordBatch

ZIPF_EXPONENT, ZIPF_SHIFT = 1.2, 2.7


class Lengths(NamedTuple):
    """The lengths of the texts in a corpus: log-normal, within bounds."""

    name: str
    log_mean: float
    log_deviation: float
    shortest: int
    longest: int

    @property
    def mean(self) -> float:
        """The mean of the log-normal distribution."""
        return math.exp(self.log_mean + self.log_deviation**2 / 2)

    def draw(self, texts: int) -> list[int]:
        """Return lengths at equally spaced quantiles of the distribution.

        >>> TREC.draw(5)
        [6, 8, 10, 12, 16]
        """
        normal = NormalDist(self.log_mean, self.log_deviation)
        drawn = [round(math.exp(normal.inv_cdf((n + 0.5) / texts))) for n in range(texts)]
        return [min(max(length, self.shortest), self.longest) for length in drawn]

    def texts_of(self, words: int) -> int:
        """Return the number of texts that have about so many words."""
        return max(1, round(words / self.mean))


IMDB = Lengths("imdb", 5.381, 0.642, 11, 2000)
TREC = Lengths("trec", 2.281, 0.382, 3, 37)


@dataclass(frozen=True)
class Workload:
    """Batches of equally many texts; one measurement runs all of them."""

    lengths: str
    batch: int
    """Texts in a batch."""
    batches: tuple[WordBatch, ...]

    @property
    def words(self) -> int:
        """Number of words in all batches."""
        return sum(batch.num_words for batch in self.batches)

    def depths(self, mean: float, *, max_depth: int) -> list[Tensor]:
        """Return a depth for each word of each batch."""
        drawn = draw_depths(self.words, mean=mean, max_depth=max_depth)
        return list(torch.split(drawn, [batch.num_words for batch in self.batches]))


def make_workload(
    lengths: Lengths, *, batch: int, batches: int = 1, vocabulary: int = 30_000
) -> Workload:
    """Return batches of random texts, shuffled so that their lengths are in no order."""
    random = np.random.default_rng(0)
    drawn = random.permutation(lengths.draw(batch * batches)).tolist()
    words = draw_words(sum(drawn), vocabulary=vocabulary, random=random)
    texts = [text.tolist() for text in np.split(words, np.cumsum(drawn)[:-1])]
    cut = [texts[start : start + batch] for start in range(0, len(texts), batch)]
    return Workload(lengths.name, batch, tuple(map(WordBatch.from_ids, cut)))


def draw_words(count: int, *, vocabulary: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Draw word ids from a Zipf-Mandelbrot distribution; id 0 is the most frequent."""
    weights = (np.arange(1, vocabulary + 1) + ZIPF_SHIFT) ** -ZIPF_EXPONENT
    return random.choice(vocabulary, count, p=weights / weights.sum())


def depth_probabilities(mean: float, *, max_depth: int) -> list[float]:
    """Return the maximum-entropy distribution over 1..max_depth with this mean.

    >>> [round(p, 3) for p in depth_probabilities(2, max_depth=3)]
    [0.333, 0.333, 0.333]
    """
    assert 1 <= mean <= max_depth
    if mean in (1, max_depth):
        return [float(depth == mean) for depth in range(1, max_depth + 1)]
    low, high = -50.0, 50.0  # p is proportional to exp(tilt * depth); its mean grows with tilt
    for _ in range(100):
        tilt = (low + high) / 2
        weights = [
            math.exp(tilt * (depth - max_depth * (tilt > 0))) for depth in range(1, max_depth + 1)
        ]
        found = sum(d * w for d, w in enumerate(weights, 1)) / sum(weights)
        low, high = (tilt, high) if found < mean else (low, tilt)
    return [weight / sum(weights) for weight in weights]


def draw_depths(count: int, *, mean: float, max_depth: int) -> Int[Tensor, " N"]:
    """Return depths with this mean in random order; how often each occurs is not random."""
    cumulative = np.cumsum(depth_probabilities(mean, max_depth=max_depth))
    quantiles = (np.arange(count) + 0.5) / count
    depths = np.searchsorted(cumulative, quantiles).clip(max=max_depth - 1) + 1
    return torch.from_numpy(np.random.default_rng(0).permutation(depths))


def word_names(count: int) -> list[str]:
    """Return distinct words of letters, shorter for frequent ids and about as long as in English.

    >>> word_names(30)[24:28]
    ['yy', 'zz', 'aaaa', 'abab']
    """
    return [_code(number) * 2 for number in range(count)]


def _code(number: int) -> str:
    """Return a number in letters: a, b, ..., z, aa, ab, ..."""
    letters = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(ord("a") + letter) + letters
    return letters


def write_texts(workload: Workload, names: Sequence[str]) -> list[str]:
    """Return the texts of a workload as strings."""
    return [
        " ".join(names[word] for word in text.tolist())
        for batch in workload.batches
        for text in torch.split(batch.words, batch.lengths.tolist())
    ]
