"""Selecting, forcing and capping the depths of words."""

import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fathomer.errors import DepthError
from fathomer.model import WordBatch
from fathomer.model.model import select_depths
from tests.model.networks import RAGGED, copied_into, packed, random_depths, random_network
from tests.model.oracle import select, sinusoid

LOGITS = torch.tensor([[0.0, 2.0, 1.0, -1.0], [5.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 9.0]])


def exactly(message: str) -> str:
    return f"^{re.escape(message)}$"


def selected(logits: torch.Tensor, how: str, *, sample: bool = False) -> list[int]:
    return select_depths(logits, how=how, sample=sample).tolist()


@pytest.mark.parametrize("how", ["hard", "gumbel", "supervised"])
def test_the_most_probable_class_j_means_j_plus_1_steps(how):
    assert selected(LOGITS, how) == [2, 1, 4]


def test_soft_selection_is_the_floor_of_the_expected_class_plus_1():
    # The expected classes of the three rows are 1.21, 0.04 and 2.999.
    assert selected(LOGITS, "soft") == [2, 1, 3]


def test_full_selection_takes_all_steps():
    assert selected(LOGITS, "full") == [4, 4, 4]


@pytest.mark.parametrize("how", ["hard", "soft", "full", "gumbel"])
def test_selection_agrees_with_its_definition(how):
    logits = torch.randn(300, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert selected(logits, how) == [select(row, how) for row in logits.tolist()]


@pytest.mark.parametrize("how", ["hard", "soft", "full", "supervised"])
def test_only_gumbel_selection_samples(how):
    assert selected(LOGITS, how, sample=True) == selected(LOGITS, how)


def test_gumbel_samples_follow_the_softmax():
    torch.manual_seed(0)
    draws = 40_000
    logits = torch.tensor([0.5, -1.0, 2.0, 0.0])
    depths = select_depths(logits.expand(draws, 4), how="gumbel", sample=True)
    frequency = torch.bincount(depths, minlength=5)[1:] / draws
    assert not (depths < 1).any()
    torch.testing.assert_close(frequency, logits.softmax(0), rtol=0, atol=5 / math.sqrt(draws) / 2)


def test_gumbel_noise_is_independent_between_words():
    torch.manual_seed(0)
    first, second = select_depths(torch.zeros(20_000, 2), how="gumbel", sample=True).view(2, -1)
    both = ((first == 1) & (second == 1)).float().mean()
    assert abs(both - 0.25) < 0.02


def test_soft_selection_of_extreme_logits_stays_within_the_depths():
    extremes = [-3e38, -1e4, -88.0, 0.0, 88.0, 1e4, 3e38]
    rows = torch.cartesian_prod(*[torch.tensor(extremes)] * 4)
    depths = select_depths(rows, how="soft", sample=False)
    assert (int(depths.min()), int(depths.max())) == (1, 4)


@settings(max_examples=200)
@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=12), st.sampled_from("hsg"))
def test_any_selection_stays_within_the_depths(row, letter):
    how = {"h": "hard", "s": "soft", "g": "gumbel"}[letter]
    assert 1 <= selected(torch.tensor([row]), how, sample=True)[0] <= len(row)


def test_prediction_is_deterministic_and_training_samples():
    network = random_network(depth="gumbel", word_dropout=0.0, hidden_dropout=0.0)
    with torch.no_grad():
        network.depth.scores.weight.mul_(0.1)
    batch = packed(RAGGED * 4)
    first, second = network(batch), network(batch)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    network.train()
    torch.manual_seed(0)
    one, other = network(batch), network(batch)
    assert not torch.equal(one.depths, other.depths)
    # The noise only selects: with the same depths, all other results are equal.
    assert torch.equal(one.depth_logits, first.depth_logits)
    assert torch.equal(network(batch, depths=one.depths).logits, one.logits)


def test_forced_depths_are_used_and_do_not_change_the_logits():
    network = random_network()
    batch = packed(RAGGED)
    depths = random_depths(batch)
    output = network(batch, depths=depths)
    assert torch.equal(output.depths, depths)
    assert torch.equal(output.depth_logits, network(batch).depth_logits)


@pytest.mark.parametrize(("depth", "position"), [(0, 0), (5, 2), (-1, 1)])
def test_a_forced_depth_out_of_range_is_refused(depth, position):
    depths = torch.tensor([1, 4, 2])
    depths[position] = depth
    with pytest.raises(DepthError, match=exactly(f"depth {depth} at word {position}; use 1..4")):
        random_network()(WordBatch.from_ids([[1, 2], [3]]), depths=depths)


@pytest.mark.parametrize("count", [0, 2, 4])
def test_a_wrong_number_of_forced_depths_is_refused(count):
    depths = torch.ones(count, dtype=torch.long)
    with pytest.raises(DepthError, match=exactly(f"{count} depths for 3 words")):
        random_network()(WordBatch.from_ids([[1, 2], [3]]), depths=depths)


@pytest.mark.parametrize("cap", [0, 5, -1])
def test_a_cap_out_of_range_is_refused(cap):
    with pytest.raises(DepthError, match=exactly(f"max_depth {cap}; use 1..4")):
        random_network()(WordBatch.from_ids([[1]]), max_depth=cap)


@pytest.mark.parametrize("cap", [1, 2, 3, 4])
@pytest.mark.parametrize("forced", [False, True])
def test_a_cap_is_the_same_as_forcing_the_capped_depths(cap, forced):
    network = random_network(depth="full")
    batch = packed(RAGGED)
    depths = random_depths(batch) if forced else None
    capped = network(batch, depths=depths, max_depth=cap)
    given_depths = random_depths(batch) if forced else torch.full((batch.num_words,), 4)
    expected = network(batch, depths=given_depths.clamp(max=cap))
    assert all(torch.equal(a, b) for a, b in zip(capped, expected, strict=True))


def test_the_depth_embedding_is_the_weight_of_the_scores_plus_a_sinusoid():
    depth = random_network(max_depth=9).depth
    sinusoids = torch.stack([sinusoid(d, 7) for d in range(1, 10)]).float()
    torch.testing.assert_close(depth.embedding(), depth.scores.weight + sinusoids)


def test_only_supervised_depth_has_a_bias_of_the_scores():
    for how in ("gumbel", "hard", "soft", "full"):
        assert random_network(depth=how).depth.scores.bias is None
    assert random_network(depth="supervised").depth.scores.bias.shape == (4,)


def test_the_sinusoids_are_not_saved_and_follow_max_depth():
    assert not [name for name in random_network().state_dict() if "sinusoid" in name]
    assert len(copied_into(random_network(), max_depth=9).depth.sinusoidal) == 9


def test_soft_selection_in_bfloat16_does_not_round_beyond_the_last_depth():
    """In bfloat16, 299 is rounded to 300."""
    logits = torch.zeros(1, 300, dtype=torch.bfloat16)
    logits[0, -1] = 100
    assert selected(logits, "soft") == [300]


@pytest.mark.parametrize("logit", [math.nan, math.inf])
def test_soft_selection_of_nan_or_infinity_stays_within_the_depths(logit):
    assert 1 <= selected(torch.tensor([[logit, 0.0]]), "soft")[0] <= 2
