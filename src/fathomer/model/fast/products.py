"""Products in float32 by oneDNN, which uses AVX-512 on the processors of all makers.

PyTorch leaves products in float32 to MKL, which uses it on Intel's only. oneDNN compiles a kernel for
every number of rows, so it gets multiples of ``ROWS``; MKL multiplies the few rows that are left.

    k rows of a product, in inputs, out outputs
"""

from collections.abc import Iterator
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

ROWS = 64
"""oneDNN multiplies multiples of this number of rows."""
PRODUCT_BLOCK = 1024
"""Rows per product; smaller blocks are slower per row with several threads."""


def product_blocks(rows: int) -> Iterator[slice]:
    """Split rows into large blocks, a multiple of ``ROWS``, and the rest.

    >>> [(rows.start, rows.stop) for rows in product_blocks(1200)]
    [(0, 1024), (1024, 1152), (1152, 1200)]
    """
    whole = rows - rows % ROWS
    starts = [*range(0, whole, PRODUCT_BLOCK), whole, rows]
    return (slice(a, b) for a, b in pairwise(starts) if a < b)


def suits_onednn(x: Float[Tensor, "k in"]) -> bool:
    """Whether oneDNN multiplies these rows."""
    suitable = x.dtype == torch.float32 and x.is_cpu and len(x) % ROWS == 0
    return suitable and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]


def plus_product(
    sums: Float[Tensor, "k out"], x: Float[Tensor, "k in"], weight: Float[Tensor, "out in"]
) -> Float[Tensor, "k out"]:
    """Return ``sums + x @ weight.T`` for one block of rows; ``sums`` may be overwritten."""
    if not suits_onednn(x):
        return torch.addmm(sums, x, weight.T, out=sums)
    found: Tensor = torch.ops.mkldnn._linear_pointwise.binary(x, sums, weight, None, "add")
    return found


def write_product(
    x: Float[Tensor, "k in"],
    weight: Float[Tensor, "out in"],
    out: Float[Tensor, "k out"],
    bias: Float[Tensor, " out"] | None = None,
) -> None:
    """Write ``x @ weight.T + bias`` to ``out``."""
    for rows in product_blocks(len(x)):
        block = x[rows]
        if suits_onednn(block):
            out[rows] = torch.ops.mkldnn._linear_pointwise(block, weight, bias, "none", [], "")
        elif bias is None:
            torch.mm(block, weight.T, out=out[rows])
        else:
            torch.addmm(bias, block, weight.T, out=out[rows])
