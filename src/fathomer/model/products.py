"""Matrix products of the training step: rounded to bfloat16 if asked to, with shared gradients.

PyTorch's autocast also computes the gates and sums that follow a product in bfloat16, which is less
exact. Inside :func:`mixed_precision`, only products are taken in bfloat16, in the forward and in the
backward pass; what follows them is float32.

oneDNN compiles and keeps a kernel for every new shape of a product in bfloat16, which takes longer
than the product itself. So products in bfloat16 are padded with rows of zeros up to a multiple of
``ROWS``: a training has a few dozen shapes instead of thousands.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fathomer.config import TrainPrecision

ROWS = 64
"""Products in bfloat16 have a multiple of this number of rows."""

_ROUNDED = ContextVar("rounded products", default=False)


@contextmanager
def mixed_precision(precision: TrainPrecision) -> Iterator[None]:
    """Take products in bfloat16, if ``precision`` says so."""
    token = _ROUNDED.set(precision == "bfloat16")
    try:
        yield
    finally:
        _ROUNDED.reset(token)


def factor_dtype(tensor: Tensor) -> torch.dtype:
    """Return the type that a factor of a product is rounded to."""
    return torch.bfloat16 if _ROUNDED.get() else tensor.dtype


def as_factor(
    rows: Float[Tensor, "rows width"], dtype: torch.dtype
) -> Float[Tensor, "padded width"]:
    """Return the left factor of a product, rounded and padded with zeros if ``dtype`` is bfloat16."""
    if dtype != torch.bfloat16:
        return rows.to(dtype)
    padded = rows.new_empty(-(-len(rows) // ROWS) * ROWS, rows.shape[1], dtype=dtype)
    padded[: len(rows)] = rows
    padded[len(rows) :] = 0
    return padded


class SharedWeight:
    """A weight matrix that takes part in several products of one training step.

    It is rounded once. Its gradient is one product over the rows of all uses; autograd by itself
    would compute a matrix of full size for each use, and add them up. Every backward pass must
    include the weight: a pass that leaves it out, on a graph that is kept, is counted later.
    """

    def __init__(self, weight: Float[Tensor, "outputs inputs"]) -> None:
        self.uses: Uses = []
        self.factor: Tensor = _Factor.apply(weight, factor_dtype(weight), self.uses)  # type: ignore[no-untyped-call]

    def product(self, x: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows outputs"]:
        """Return ``x @ weight.T``."""
        found: Tensor = _Product.apply(x, self.factor, self.uses)  # type: ignore[no-untyped-call]
        return found


class LayerWeights(NamedTuple):
    """The matrices of the S-LSTM that every layer uses."""

    window: SharedWeight
    node: SharedWeight
    """V of Eq. (2), then W of Eq. (3): both are multiplied with ``g``."""
    node_mean: SharedWeight
    node_word: SharedWeight


Uses = list[tuple[Tensor, Tensor]]
"""The input of each product and the gradient of its result, collected in the backward pass."""


class _Factor(torch.autograd.Function):
    """The rounded matrix. Autograd runs its backward pass after those of all products with it."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, dtype: torch.dtype, uses: Uses) -> Tensor:
        """Return the rounded matrix."""
        ctx.set_materialize_grads(False)
        ctx.uses, ctx.dtype = uses, weight.dtype
        return weight.to(dtype).view_as(weight)

    @staticmethod
    def backward(ctx: Any, _: None) -> tuple[Tensor | None, None, None]:
        """Return the gradient of the matrix, summed over all uses."""
        if not ctx.uses:
            return None, None, None
        inputs, grads = (torch.cat(parts) for parts in zip(*ctx.uses, strict=True))
        ctx.uses.clear()
        return (grads.T @ inputs).to(ctx.dtype), None, None


class _Product(torch.autograd.Function):
    """A product with a rounded matrix."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: Tensor, uses: Uses) -> Tensor:
        """Return ``x @ factor.T`` in the type of ``x``."""
        ctx.uses, ctx.dtype, rows = uses, x.dtype, len(x)
        x = as_factor(x, factor.dtype)
        ctx.save_for_backward(x, factor)
        return (x @ factor.T)[:rows].to(ctx.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None]:
        """Return the gradient of ``x``, and leave that of the matrix to :class:`_Factor`."""
        x, factor = ctx.saved_tensors
        rows, grad = len(grad), as_factor(grad, factor.dtype)
        if ctx.needs_input_grad[1]:
            ctx.uses.append((x.detach(), grad))  # with its history, the graph would hold itself
        if not ctx.needs_input_grad[0]:
            return None, None, None
        return (grad @ factor)[:rows].to(ctx.dtype), None, None
