"""Products by oneDNN and by MKL give the same sums."""

import pytest
import torch

from fathomer.model.fast.products import (
    PRODUCT_BLOCK,
    ROWS,
    plus_product,
    product_blocks,
    suits_onednn,
    write_product,
)

SIZES = [0, 1, ROWS - 1, ROWS, ROWS + 1, PRODUCT_BLOCK + 2 * ROWS + 3]


def numbers(*shape: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Draw whole numbers, whose products and sums are exact in any order."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-3, 4, shape, generator=generator).to(dtype)


@pytest.mark.parametrize("rows", SIZES)
def test_blocks_cover_all_rows_in_order(rows):
    found = list(product_blocks(rows))
    assert [row for block in found for row in range(block.start, block.stop)] == list(range(rows))
    assert all(0 < block.stop - block.start <= PRODUCT_BLOCK for block in found)
    assert (
        sum(block.stop - block.start for block in found if (block.stop - block.start) % ROWS) < ROWS
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("biased", [True, False])
def test_a_product_is_written_to_its_place(rows, dtype, biased):
    x, weight = (numbers(n, 5, dtype=dtype, seed=n) for n in (rows, 7))
    bias = numbers(7, dtype=dtype, seed=1) if biased else None
    out = torch.full((2, rows, 7), torch.nan, dtype=dtype)
    write_product(x, weight, out[1], bias)
    expected = x @ weight.T if bias is None else x @ weight.T + bias
    assert torch.equal(out[1], expected)
    assert out[0].isnan().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [1, ROWS, ROWS + 1, PRODUCT_BLOCK])
def test_a_product_is_added_to_sums(rows, dtype):
    x, weight = (numbers(n, 5, dtype=dtype, seed=n) for n in (rows, 7))
    sums = numbers(rows, 7, dtype=dtype, seed=1)
    assert torch.equal(plus_product(sums.clone(), x, weight), sums + x @ weight.T)


def test_onednn_multiplies_whole_multiples_in_float32():
    assert suits_onednn(torch.zeros(2 * ROWS, 3))
    assert not suits_onednn(torch.zeros(ROWS + 1, 3))
    assert not suits_onednn(torch.zeros(ROWS, 3, dtype=torch.float64))
    assert not suits_onednn(torch.zeros(ROWS, 3, device="meta"))


def test_without_onednn_the_sums_are_the_same(monkeypatch):
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    x, weight = (numbers(n, 5, dtype=torch.float32, seed=n) for n in (ROWS, 7))
    out, sums = torch.empty(ROWS, 7), torch.ones(ROWS, 7)
    write_product(x, weight, out)
    assert torch.equal(out, x @ weight.T)
    assert torch.equal(plus_product(sums.clone(), x, weight), sums + x @ weight.T)
