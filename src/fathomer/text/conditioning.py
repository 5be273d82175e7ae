"""Conditioning of pretrained vectors: centred and scaled for the texts that they are used on.

Pretrained vectors share a large common component: the frequency-weighted mean of GloVe's vectors is
more than half as long as a typical difference from it. A network that reads them as they are starts
out with nearly the same features for every text. Here the mean is subtracted, and the rest is scaled
to a fixed spread, so that any file of vectors starts learning equally well.

    V known words, size: width of a vector
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SPREAD = 1.0
"""Root mean square of a conditioned number over the words of the training texts."""


class Conditioning(NamedTuple):
    """What was subtracted from the vectors of a file, and what they were multiplied by."""

    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    """One number per column, the same for all columns of a part."""


def fit_conditioning(
    matrix: NDArray[np.float32], counts: NDArray[np.integer], parts: Sequence[int] = ()
) -> Conditioning:
    """Measure the mean and the spread of vectors, weighted by how often their words occur.

    Joined vectors are measured part by part; ``parts`` are their widths. Zeros are missing numbers:
    joined vectors have them where a word lacks a part.
    """
    ends = np.cumsum(parts or (matrix.shape[1],))
    found = [_fit_part(part, counts) for part in np.split(matrix, ends[:-1], axis=1)]
    return Conditioning(*(np.concatenate(each) for each in zip(*found, strict=True)))


def _fit_part(matrix: NDArray[np.float32], counts: NDArray[np.integer]) -> Conditioning:
    present = matrix != 0
    weights = counts[:, None] * present
    totals = np.maximum(weights.sum(0), 1e-9)
    mean = (weights * matrix).sum(0, dtype=np.float64) / totals
    squares = (weights * np.square(matrix - mean)).sum(dtype=np.float64) / totals.sum()
    spread = float(np.sqrt(squares))
    scale = SPREAD / spread if spread > 0 else 1.0
    return Conditioning(mean.astype(np.float32), np.full(len(mean), scale, dtype=np.float32))


def apply_conditioning(
    matrix: NDArray[np.float32], conditioning: Conditioning
) -> NDArray[np.float32]:
    """Centre and scale vectors; missing numbers stay zero, which is the centre.

    Known words without a vector get random ones, so that they can be told apart. Row 0, the unknown
    word, stays at the centre.
    """
    moved = (matrix - conditioning.mean) * conditioning.scale
    moved = np.where(matrix != 0, moved, np.float32(0))
    missing = 1 + np.flatnonzero(~matrix[1:].any(1))
    shape = len(missing), matrix.shape[1]
    moved[missing] = SPREAD * np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    return moved
