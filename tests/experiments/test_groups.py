"""Runs that belong together: their cells, and how they are compared."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.groups import Group, compare, find_group
from experiments.runs import pack_bits
from experiments.tables import table3, table4
from tests.experiments.fakes import fake


def test_settings_are_not_mixed():
    runs = [fake(seed=0), fake(seed=1), fake(seed=2, settings={"train.epochs": 3}, right=1)]
    assert find_group(runs, "trec", "fathomer").runs == tuple(runs[:2])
    assert find_group(runs, "trec", "fathomer", depth="hard") is None


def test_a_cell_is_mean_deviation_number_and_marks():
    runs = [fake(seed=seed, right=right) for seed, right in enumerate((88, 90, 92))]
    group = find_group(runs, "trec", "fathomer")
    assert group.cell() == "90.00 ± 2.00 (3) v"
    assert find_group(runs[:1], "trec", "fathomer").cell() == "88.00 (1) v"
    assert "| 90.00 ± 2.00 (3) v | 96.4 |" in table3(runs).to_markdown()


def test_what_differs_from_the_paper_is_marked():
    exact = fake(vectors="glove.840B.300d")
    assert Group((exact,)).marks == ""
    small = fake(settings={"model.hidden_size": 200})
    partial = fake(notes=("partial training file: 1 of 2",))
    folds = fake("mr", fold=1, folds=1)
    assert [Group((run,)).marks for run in (small, partial, folds)] == ["vs", "vp", "vf"]
    size = {"model.hidden_size": 200}
    others = [fake(model=name, settings=size) for name in ("bilstm", "char-cnn", "tfidf")]
    assert [Group((run,)).marks for run in others] == ["vs", "s", ""], "what a model does not have"
    ours = fake("trec", settings={"model.depth": "hard"})
    assert "vc" in table4([fake(), ours]).rows[5][1], "the paper's ablation is on IMDB"


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


def test_several_seeds_are_not_several_texts():
    one = compare((group(), group("bilstm", rights=(86,))))
    many = compare((group(rights=[90] * 9), group("bilstm", rights=[86] * 9)))
    assert many == replace(one, runs=9)
    assert compare((group(rights=(90, 80)), group("bilstm", rights=(80,)))).gain == pytest.approx(
        0.05
    )


def test_only_folds_that_both_have_read_are_compared():
    ours = Group(tuple(fake("mr", fold=fold, folds=10, right=right, checksums={"test": str(fold)})
                       for fold, right in ((1, 90), (2, 90), (3, 10))))  # fmt: skip
    theirs = Group(tuple(fake("mr", "bilstm", fold=fold, folds=10, right=80, checksums={"test": str(fold)})
                         for fold in (1, 2)))  # fmt: skip
    found = compare((ours, theirs))
    assert (found.texts, found.runs, found.gain) == (200, 2, pytest.approx(0.1))


def test_what_cancels_out_is_no_gain():
    """Thirds are no binary fractions: their sum must be zero all the same, and count on both sides."""
    answers = np.arange(100) < 50
    swapped = [answers, answers, np.arange(100) >= 50]
    ours = Group(tuple(fake(seed=n, correct=pack_bits(a)) for n, a in enumerate(swapped)))
    theirs = Group(tuple(fake(seed=n, correct=pack_bits(~a)) for n, a in enumerate(swapped)))
    found = compare((ours, theirs))
    assert found.gain == pytest.approx(0)
    assert found.p == 1.0, (
        "zero is counted to both sides, so that the tails are more than half each"
    )


def test_several_corpora_are_compared_together():
    pairs = [(group(checksums={"test": name}), group("bilstm", rights=(right,), checksums={"test": name}))
             for name, right in (("a", 87), ("b", 88), ("c", 87))]  # fmt: skip
    assert not any(compare(pair).p < 0.01 for pair in pairs)
    found = compare(*pairs)
    assert (found.texts, found.runs, found.gain) == (300, 3, pytest.approx(8 / 300))
    assert found.p < 0.01
