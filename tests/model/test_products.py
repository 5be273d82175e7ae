"""Products with a shared weight: rounding, and gradients that agree with those of autograd."""

import gc
import weakref

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from fathomer.model.products import ROWS, SharedWeight, mixed_precision


def random_tensor(*shape: int, seed: int = 0) -> Tensor:
    """Draw a leaf in float64 that needs a gradient."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)


def near_odd_numbers(*shape: int, seed: int) -> Tensor:
    """Draw numbers in float32 that bfloat16 rounds to -3, -1, 1 or 3.

    Sums of products of such integers are exact in bfloat16, so results can be compared exactly.
    """
    generator = torch.Generator().manual_seed(seed)
    odd = 2 * torch.randint(-1, 3, shape, generator=generator) - 1
    return odd + 1e-3 * (torch.rand(shape, generator=generator) - 0.5)


class Hook:
    """A hook that lives as long as the graph to which it belongs."""

    def __call__(self, grad: Tensor) -> None:
        """Leave the gradient as it is."""


def gradients(result: Tensor, *leaves: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradients of a loss that is not linear in the result."""
    return torch.autograd.grad(result.sin().sum(), leaves, allow_unused=True)


def chained(x: Tensor, y: Tensor, product) -> Tensor:
    """Use a square matrix several times: side by side, one after another and without rows."""
    h = product(x).tanh()
    h = product(h[:3]) * product(y)[:3] + h[:3]
    return torch.cat([product(h), product(y), product(x[:0])])


def test_a_product_is_that_with_the_transposed_weight():
    x, weight = random_tensor(5, 3), random_tensor(4, 3, seed=1)
    found = SharedWeight(weight).product(x)
    torch.testing.assert_close(found, x @ weight.T, rtol=0, atol=1e-12)


def test_gradients_over_several_uses_agree_with_those_of_autograd():
    x, y, weight = random_tensor(5, 4), random_tensor(7, 4, seed=1), random_tensor(4, 4, seed=2)
    found = chained(x, y, SharedWeight(weight).product)
    expected = chained(x, y, lambda rows: rows @ weight.T)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    leaves = (x, y, weight)
    for mine, autograd in zip(gradients(found, *leaves), gradients(expected, *leaves), strict=True):
        torch.testing.assert_close(mine, autograd, rtol=0, atol=1e-12)


def test_a_pass_without_the_weight_leaves_no_memory_behind():
    x, weight = random_tensor(5, 4), random_tensor(4, 4, seed=1)
    shared = SharedWeight(weight)
    hidden = shared.product(x).tanh()
    result = shared.product(hidden)
    (found,) = gradients(result, x)
    (expected,) = gradients((x @ weight.T).tanh() @ weight.T, x)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    hook = Hook()
    hidden.register_hook(hook)
    watched = weakref.ref(hook)
    gc.disable()  # a collection might free what the products do not
    try:
        del shared, hidden, result, hook
        assert watched() is None
    finally:
        gc.enable()


def test_two_shared_weights_of_one_matrix_add_up_their_gradients():
    x, weight = random_tensor(5, 4), random_tensor(4, 4, seed=1)
    one, other = SharedWeight(weight), SharedWeight(2 * weight)
    (found,) = gradients(other.product(one.product(x)), weight)
    (expected,) = gradients(x @ weight.T @ (2 * weight).T, weight)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_a_weight_without_products_gets_no_gradient():
    x, used, unused = random_tensor(5, 3), random_tensor(4, 3), random_tensor(4, 3, seed=1)
    found = SharedWeight(used).product(x)
    SharedWeight(unused)
    found.sum().backward()
    assert unused.grad is None
    assert used.grad.any()


def test_a_product_that_does_not_reach_the_loss_adds_nothing_to_the_gradient():
    x, y, weight = random_tensor(5, 3), random_tensor(2, 3, seed=1), random_tensor(4, 3, seed=2)
    shared = SharedWeight(weight)
    shared.product(y)
    found = gradients(shared.product(x), weight, y)
    expected = gradients(x @ weight.T, weight, y)
    torch.testing.assert_close(found[0], expected[0], rtol=0, atol=1e-12)
    assert found[1] is None


def test_a_product_without_rows_has_a_gradient_of_zero():
    x, weight = random_tensor(0, 3), random_tensor(4, 3)
    SharedWeight(weight).product(x).sum().backward()
    assert x.grad.shape == (0, 3)
    assert torch.equal(weight.grad, torch.zeros(4, 3, dtype=torch.float64))


def test_an_input_that_needs_no_gradient_gets_none():
    x, y = random_tensor(5, 3).detach(), random_tensor(2, 3, seed=1)
    weight = random_tensor(4, 3, seed=2)
    shared = SharedWeight(weight)
    (shared.product(x).sum() + shared.product(y).sum()).backward()
    assert x.grad is None
    torch.testing.assert_close(y.grad, weight.sum(0).expand(2, 3))
    torch.testing.assert_close(weight.grad, torch.cat([x, y]).sum(0).expand(4, 3))


def test_a_weight_that_needs_no_gradient_gets_none():
    x, weight = random_tensor(5, 3), random_tensor(4, 3, seed=1).detach()
    SharedWeight(weight).product(x).sum().backward()
    assert weight.grad is None
    torch.testing.assert_close(x.grad, weight.sum(0).expand(5, 3))


@pytest.mark.parametrize(("needed", "products"), [("x", 1), ("weight", 1), ("both", 2)])
def test_a_gradient_that_is_not_needed_costs_no_product(needed, products):
    x, weight = random_tensor(5, 3), random_tensor(4, 3, seed=1)
    found = SharedWeight(weight.detach() if needed == "x" else weight).product(
        x.detach() if needed == "weight" else x
    )
    with FlopCounterMode(display=False) as counter:
        found.sum().backward()
    assert counter.get_total_flops() == products * 2 * 5 * 4 * 3


def test_no_gradient_is_tracked_if_nothing_needs_one():
    x, weight = random_tensor(5, 3), random_tensor(4, 3, seed=1)
    assert not SharedWeight(weight.detach()).product(x.detach()).requires_grad
    with torch.no_grad():
        assert not SharedWeight(weight).product(x).requires_grad


def test_a_second_forward_and_backward_pass_gives_the_same_gradients():
    x, y, weight = random_tensor(5, 4), random_tensor(7, 4, seed=1), random_tensor(4, 4, seed=2)
    leaves = (x, y, weight)
    first, second = (
        gradients(chained(x, y, SharedWeight(weight).product), *leaves) for _ in range(2)
    )
    shared = SharedWeight(weight)
    third, fourth = (gradients(chained(x, y, shared.product), *leaves) for _ in range(2))
    for found in (second, third, fourth):
        assert all(torch.equal(a, b) for a, b in zip(found, first, strict=True))


def test_a_second_backward_pass_through_the_same_products_gives_the_same_gradients():
    x, y, weight = random_tensor(5, 4), random_tensor(7, 4, seed=1), random_tensor(4, 4, seed=2)
    loss = chained(x, y, SharedWeight(weight).product).sin().sum()
    first, second = (torch.autograd.grad(loss, (x, y, weight), retain_graph=True) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_in_bfloat16_a_product_is_that_of_the_rounded_factors():
    x, weight = near_odd_numbers(6, 5, seed=0), near_odd_numbers(4, 5, seed=1)
    with mixed_precision("bfloat16"):
        found = SharedWeight(weight).product(x)
    assert found.dtype == torch.float32
    assert torch.equal(found, x.round() @ weight.round().T)
    assert not torch.equal(found, x @ weight.T)


def test_in_bfloat16_gradients_are_products_of_the_rounded_factors():
    """The backward pass is outside of the context, as in training."""
    x, y = (near_odd_numbers(rows, 5, seed=rows).requires_grad_() for rows in (6, 2))
    weight = near_odd_numbers(4, 5, seed=1).requires_grad_()
    grads = [near_odd_numbers(rows, 4, seed=10 + rows) for rows in (6, 2)]
    with mixed_precision("bfloat16"):
        shared = SharedWeight(weight)
        results = [shared.product(rows) for rows in (x, y)]
    torch.autograd.backward(results, grads)
    inputs, of_results = torch.cat([x, y]).detach().round(), torch.cat(grads).round()
    assert {leaf.grad.dtype for leaf in (x, y, weight)} == {torch.float32}
    assert torch.equal(torch.cat([x.grad, y.grad]), of_results @ weight.detach().round())
    assert torch.equal(weight.grad, of_results.T @ inputs)


def test_a_weight_is_rounded_once_for_all_products():
    with mixed_precision("bfloat16"):
        shared = SharedWeight(torch.randn(4, 3))
    assert shared.factor.dtype == torch.bfloat16


def multiplied_rows(rows: int, precision: str) -> set[int]:
    """Return how many rows are multiplied, or summed over, in a forward and a backward pass."""
    x, weight = torch.ones(rows, 3, requires_grad=True), torch.ones(5, 3, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as found:
        with mixed_precision(precision):
            result = SharedWeight(weight).product(x)
        result.sum().backward()
    products = [event.input_shapes for event in found.events() if event.name == "aten::mm"]
    assert len(products) == 3
    return {size for shapes in products for shape in shapes for size in shape} - {3, 5}


def test_in_bfloat16_products_of_different_sizes_have_one_shape():
    assert {n for rows in (1, 30, ROWS) for n in multiplied_rows(rows, "bfloat16")} == {ROWS}
    assert multiplied_rows(ROWS + 1, "bfloat16") == {2 * ROWS}


def test_in_float32_no_rows_are_added():
    assert multiplied_rows(30, "float32") == {30}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_in_float32_nothing_is_rounded(dtype):
    x, weight = torch.randn(5, 3, dtype=dtype), torch.randn(4, 3, dtype=dtype)
    with mixed_precision("float32"):
        found = SharedWeight(weight).product(x)
    assert torch.equal(found, x @ weight.T)


def test_rounding_ends_with_the_context():
    weight = torch.randn(4, 3)
    with mixed_precision("bfloat16"):
        with mixed_precision("float32"):
            assert SharedWeight(weight).factor.dtype == torch.float32
        assert SharedWeight(weight).factor.dtype == torch.bfloat16
    assert SharedWeight(weight).factor.dtype == torch.float32


def test_rounding_ends_with_an_error():
    with pytest.raises(RuntimeError), mixed_precision("bfloat16"):
        SharedWeight(torch.randn(4, 3)).product(torch.randn(2, 5))
    assert SharedWeight(torch.randn(4, 3)).factor.dtype == torch.float32
