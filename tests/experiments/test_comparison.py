"""Paired comparisons of groups of runs on the same test texts."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.comparison import compare
from experiments.groups import Group
from experiments.runs import pack_bits
from tests.experiments.fakes import fake


def group(model="fathomer", *, rights=(90,), **others):
    return Group(
        tuple(fake(model=model, seed=n, right=right, **others) for n, right in enumerate(rights))
    )


def test_a_comparison_pairs_the_texts():
    ours, theirs = group(), group("bilstm", rights=(80,))
    found = compare((ours, theirs))
    assert found.gain == pytest.approx(0.1)
    assert found.significant
    assert 0.03 < found.low < 0.1 < found.high < 0.17, "ten texts of a hundred differ"
    back = compare((theirs, ours))
    assert (back.gain, back.p) == (pytest.approx(-0.1), found.p)
    assert not compare((ours, group("bilstm", rights=(89,)))).significant
    assert compare((ours, ours)).p == 1.0
    assert compare((ours, group("bilstm", checksums={"test": "other"}))) is None


def test_more_seeds_are_not_more_texts():
    one = compare((group(), group("bilstm", rights=(86,))))
    many = compare((group(rights=[90] * 9), group("bilstm", rights=[86] * 9)))
    assert many == replace(one, runs=9)
    assert compare((group(rights=(90, 80)), group("bilstm", rights=(80,)))).gain == pytest.approx(
        0.05
    )


def test_only_folds_that_both_groups_have_are_compared():
    ours = Group(tuple(fake("mr", fold=fold, folds=10, right=right, checksums={"test": str(fold)})
                       for fold, right in ((1, 90), (2, 90), (3, 10))))  # fmt: skip
    theirs = Group(tuple(fake("mr", "bilstm", fold=fold, folds=10, right=80, checksums={"test": str(fold)})
                         for fold in (1, 2)))  # fmt: skip
    found = compare((ours, theirs))
    assert (found.texts, found.runs, found.gain) == (200, 2, pytest.approx(0.1))


def test_differences_that_cancel_out_are_no_gain():
    """Sums of thirds have rounding errors, but must be exactly zero and count on both sides."""
    answers = np.arange(100) < 50
    swapped = [answers, answers, np.arange(100) >= 50]
    ours = Group(tuple(fake(seed=n, correct=pack_bits(a)) for n, a in enumerate(swapped)))
    theirs = Group(tuple(fake(seed=n, correct=pack_bits(~a)) for n, a in enumerate(swapped)))
    found = compare((ours, theirs))
    assert found.gain == pytest.approx(0)
    assert found.p == 1.0, "zero counts on both sides, so each tail is more than a half"


def test_the_texts_of_several_corpora_are_resampled_together():
    pairs = [(group(checksums={"test": name}), group("bilstm", rights=(right,), checksums={"test": name}))
             for name, right in (("a", 87), ("b", 88), ("c", 87))]  # fmt: skip
    assert not any(compare(pair).p < 0.01 for pair in pairs)
    found = compare(*pairs)
    assert (found.texts, found.runs, found.gain) == (300, 3, pytest.approx(8 / 300))
    assert found.p < 0.01
