"""Linear layers whose products can be taken in bfloat16 while everything else stays in float32.

PyTorch's autocast would also compute the gates, states and sums that follow a product in bfloat16,
which is less exact. Inside :func:`mixed_precision`, only the two factors of a product are rounded, in
the forward and in the backward pass; the result is float32.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from fathomer.config import TrainPrecision

_ROUNDED = ContextVar("rounded products", default=False)


@contextmanager
def mixed_precision(precision: TrainPrecision) -> Iterator[None]:
    """Take the products of these layers in bfloat16, if ``precision`` says so."""
    token = _ROUNDED.set(precision == "bfloat16")
    try:
        yield
    finally:
        _ROUNDED.reset(token)


class Linear(nn.Linear):
    """A linear layer."""

    def forward(self, input: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows outputs"]:
        """Return the product with the weights, plus the bias."""
        return product(input, self.weight, self.bias)


def product(
    x: Float[Tensor, "*rows inputs"],
    weight: Float[Tensor, "outputs inputs"],
    bias: Float[Tensor, " outputs"] | None = None,
) -> Float[Tensor, "*rows outputs"]:
    """Return ``x @ weight.T + bias``, with the factors rounded inside :func:`mixed_precision`."""
    if not _ROUNDED.get():
        return functional.linear(x, weight, bias)
    found: Tensor = RoundedProduct.apply(x, weight)  # type: ignore[no-untyped-call]
    return found if bias is None else found + bias


class RoundedProduct(torch.autograd.Function):
    """A product whose factors are rounded to bfloat16, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        """Return ``x @ weight.T`` in float32."""
        x, weight = x.bfloat16(), weight.bfloat16()
        ctx.save_for_backward(x, weight)
        return (x @ weight.T).float()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Return the gradients of both factors in float32."""
        x, weight = ctx.saved_tensors
        needs_x, needs_weight = ctx.needs_input_grad
        grad = grad.bfloat16()
        return (
            (grad @ weight).float() if needs_x else None,
            (grad.T @ x).float() if needs_weight else None,
        )
