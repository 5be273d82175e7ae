"""What the paper claims, and what our runs say to it: computed, never written by hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fathomer.data.corpora import CORPORA
from fathomer.lab.groups import Comparison, compare, find_group
from fathomer.lab.runs import Run
from fathomer.lab.tables import ablated_corpus

Verdict = Literal["reproduced", "partly", "not", "not attempted"]
SPEED_UP = 3.0
ENOUGH_RUNS = 3
"""Fewer reproduce nothing: the bootstrap draws texts, and one training may be lucky."""
TOLERANCE = 0.002
"""Accuracies that are nearer than this are called equal."""


@dataclass(frozen=True)
class Claim:
    """Hold a claim with the verdict and the numbers behind it."""

    claim: str
    verdict: Verdict
    numbers: str


def all_claims(runs: Sequence[Run]) -> list[Claim]:
    """Judge all claims."""
    return [
        _against(runs, "s-lstm", "more accurate than S-LSTM"),
        _against(runs, "bilstm", "more accurate than a three-layer BiLSTM"),
        _against_row(runs, "Gumbel selection is better than hard selection", depth="hard"),
        _against_row(runs, "Gumbel selection is better than soft selection", depth="soft"),
        _against_row(runs, "the BiLSTM below contributes to accuracy", sequence="none"),
        _speed(runs),
    ]


def judge(found: Sequence[Comparison]) -> Verdict:
    """Judge gains: all better and some surely so, in enough runs; some better; or none."""
    if not found:
        return "not attempted"
    surely = [each for each in found if each.significant and each.gain > 0]
    worse = [each for each in found if each.gain <= 0]
    if surely and not worse and sum(each.runs for each in found) >= ENOUGH_RUNS:
        return "reproduced"
    return "partly" if surely or not worse else "not"


def _against(runs: Sequence[Run], rival: str, claim: str) -> Claim:
    found = {}
    for corpus in CORPORA:
        ours, theirs = find_group(runs, corpus, "fathomer"), find_group(runs, corpus, rival)
        comparison = compare(ours, theirs) if ours and theirs else None
        if comparison:
            found[corpus] = comparison
    return Claim(claim, judge(list(found.values())), _numbers(found))


def _against_row(runs: Sequence[Run], claim: str, **changed: Any) -> Claim:
    corpus = ablated_corpus(runs)
    ours, theirs = (find_group(runs, corpus, "fathomer", **row) for row in ({}, changed))
    comparison = compare(ours, theirs) if ours and theirs else None
    found = {corpus: comparison} if comparison else {}
    return Claim(claim, judge(list(found.values())), _numbers(found))


def _speed(runs: Sequence[Run]) -> Claim:
    """Compare adaptive with full depth, both trained as such."""
    claim = f"adaptive depth is {SPEED_UP:g} times as fast as full depth, and no less accurate"
    corpus = ablated_corpus(runs)
    ours, full = (find_group(runs, corpus, "fathomer", depth=d) for d in ("gumbel", "full"))
    if ours is None or full is None:
        return Claim(claim, "not attempted", "")
    name = "predict_words_per_second"
    ratio = ours.mean(name) / full.mean(name)
    change = ours.mean("accuracy") - full.mean("accuracy")
    as_good, as_fast = change >= -TOLERANCE, ratio >= SPEED_UP
    verdict: Verdict = "reproduced" if as_good and as_fast else "not"
    if verdict == "not" and (as_fast or (as_good and ratio > 1)):
        verdict = "partly"
    depth = ours.mean("mean_depth")
    numbers = f"{corpus}: {ratio:.2f} times as fast at mean depth {depth:.2f}, {100 * change:+.2f}"
    return Claim(claim, verdict, numbers)


def _numbers(found: dict[str, Comparison]) -> str:
    return "; ".join(f"{corpus}: {comparison}" for corpus, comparison in found.items())
