"""Verdicts on the paper's claims, computed from the runs."""

from dataclasses import replace

import numpy as np

from experiments.claims import all_claims, judge
from experiments.comparison import Comparison
from experiments.runs import pack_bits
from fathomer.data.datasets import CORPORA
from tests.experiments.fakes import DEEP, fake


def verdicts(runs):
    return {claim.claim: claim.verdict for claim in all_claims(runs)}


def test_a_verdict_follows_from_the_gains():
    better, unsure = Comparison(0.1, 0.05, 0.2, 0.001, 9, 3), Comparison(0.1, -0.1, 0.3, 0.4, 9, 3)
    worse, below = (
        Comparison(-0.1, -0.2, -0.05, 0.001, 9, 3),
        Comparison(-0.01, -0.2, 0.1, 0.5, 9, 3),
    )
    assert judge([better]) == judge([better, unsure, below]) == "reproduced"
    assert judge([replace(better, runs=2), unsure]) == "partly", (
        "the runs of other corpora do not count"
    )
    assert judge([better, better, worse]) == "partly"
    assert judge([better, *[replace(below, gain=-0.2)] * 2]) == "not", "no gain on average"
    assert judge([unsure]) == judge([unsure, below]) == "not", "it may be chance"
    assert judge([worse]) == judge([better, worse]) == judge([better, *[worse] * 19]) == "not"
    assert judge([]) == "not attempted"


def test_each_claim_gets_its_verdict():
    rows = {"hard": {"model.depth": "hard"}, "none": {"model.sequence": "none"}}
    runs = [
        each
        for seed in range(3)
        for each in (
            fake(seed=seed, right=95, speed=400.0, forced=DEEP), fake(model="s-lstm", seed=seed, right=80),
            fake(model="bilstm", seed=seed, right=97),
            fake(seed=seed, right=94, settings={"model.depth": "full"}),
            fake(seed=seed, right=99, settings=rows["hard"]),
            fake(seed=seed, right=70, settings=rows["none"]),
        )
    ]  # fmt: skip
    assert list(verdicts(runs).values()) == [
        "reproduced", "not", "not", "not attempted", "reproduced", "reproduced", "not attempted"
    ]  # fmt: skip
    assert verdicts(runs[:6])["more accurate than S-LSTM"] == "partly", "one run is not enough"
    slow = [replace(run, predict_words_per_second=250.0) for run in runs]
    speed = "adaptive depth is 3 times as fast as full depth, and no less accurate"
    assert verdicts(slow)[speed] == "partly"
    assert "trec: 2.50 times as fast at mean depth 4.00; " in all_claims(slow)[-2].numbers
    poor = [replace(run, correct=pack_bits(np.arange(100) < 60)) if run in runs[::6] else run
            for run in runs]  # fmt: skip
    assert verdicts(poor)[speed] == "not", "faster, but less accurate"
    untimed = [replace(run, forced=()) for run in runs]
    assert verdicts(untimed)[speed] == "not attempted"


def test_a_claim_shows_the_papers_gain_next_to_ours():
    runs = [fake(), fake(model="s-lstm"), fake(settings={"model.sequence": "none"})]
    numbers = {claim.claim: claim.numbers for claim in all_claims(runs)}
    assert numbers["more accurate than S-LSTM"].endswith("(1 run), paper +0.40")
    assert numbers["the BiLSTM below contributes to accuracy"].endswith("(1 run), paper +1.02")


def test_depth_goes_to_words_that_need_it_if_every_shuffle_is_worse():
    def verdict(*accuracies):
        depths = [{"mean_depth": 5.0}, {"mean_depth": 3.0}]
        found = {
            str(number): {"accuracy": accuracy, "dealt": [0.4, 0.6], "by_frequency": depths}
            for number, accuracy in enumerate(accuracies)
        }
        return all_claims([], found)[-1].verdict

    assert (verdict(0.7, 0.8), verdict(0.7, 0.6), verdict(0.6)) == ("reproduced", "partly", "not")
    assert verdict() == "not attempted"


def test_amazon_counts_as_one_corpus():
    names = [name for name in CORPORA if name.startswith("amazon16/")]
    runs = [fake(name, model, right=right, forced=DEEP if right == 88 else ()) for name in names
            for model, right in (("fathomer", 88), ("bilstm", 87))]  # fmt: skip
    found = {claim.claim: claim for claim in all_claims(runs)}[
        "more accurate than a three-layer BiLSTM"
    ]
    assert found.verdict == "reproduced", "sixteen trainings, each a little better"
    assert found.numbers.startswith("amazon16: +1.00 [")
    assert found.numbers.endswith("(16 runs), paper +1.80")
    assert all_claims(runs)[-2].numbers == "amazon16: 1.00 times as fast at mean depth 4.00"
