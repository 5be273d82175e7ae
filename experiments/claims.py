"""The paper's claims, each with a verdict computed from our runs."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, Literal

from experiments.ablation import ablated_corpus, variant_settings
from experiments.comparison import Comparison, compare
from experiments.groups import Group, family_of, find_group, find_pair
from experiments.published import published
from experiments.runs import Run
from fathomer.data.datasets import CORPORA

Verdict = Literal["reproduced", "partly", "not", "not attempted"]
SPEED_UP = 3.0
ENOUGH_RUNS = 3
"""With fewer runs nothing counts as reproduced: the bootstrap ignores variation between trainings."""
RULE = f"""Gains are in percentage points of accuracy, with the central 95 % of a paired bootstrap
over the test texts.

- A gain is reproduced if its mean over the corpora is positive, it is significant (p < 0.05) on at least one
  corpus with at least {ENOUGH_RUNS} runs, and no corpus shows a significant loss. It is partly reproduced if
  its mean is positive and it is significant on more corpora than a loss is.
- Speed compares a model at its selected depths with the same model with every word at the maximum depth. The
  claim is reproduced if the model is {SPEED_UP:g} times as fast on every corpus, and partly reproduced if it is
  faster on every corpus; in both cases only if training at full depth is not significantly more accurate.
- The claim that depth goes to the words that need it is reproduced if the selected depths are more accurate
  than each of ten random shuffles of the same depths between the words, on every corpus that was analysed,
  and partly reproduced if on some."""


@dataclass(frozen=True)
class Claim:
    """A claim with its verdict and the numbers behind it."""

    claim: str
    verdict: Verdict
    numbers: str


def all_claims(
    runs: Sequence[Run], analyses: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Claim]:
    """Judge all claims by the runs and by named analyses of ``python -m experiments depths``."""
    return [
        _against_rival(runs, "s-lstm", "more accurate than S-LSTM"),
        _against_rival(runs, "bilstm", "more accurate than a three-layer BiLSTM"),
        _against_variant(runs, "hard", "Gumbel selection is better than hard selection"),
        _against_variant(runs, "soft", "Gumbel selection is better than soft selection"),
        _against_variant(runs, "no_sequence", "the BiLSTM below contributes to accuracy"),
        _speed(runs),
        _depth_where_needed(analyses or {}),
    ]


def judge(comparisons: Collection[Comparison]) -> Verdict:
    """Return the verdict on a gain in accuracy, by :data:`RULE`."""
    if not comparisons:
        return "not attempted"
    better = [each for each in comparisons if each.significant and each.gain > 0]
    worse = [each for each in comparisons if each.significant and each.gain < 0]
    if len(better) <= len(worse) or mean(each.gain for each in comparisons) <= 0:
        return "not"
    enough = any(each.runs >= ENOUGH_RUNS for each in better)
    return "reproduced" if enough and not worse else "partly"


def _against_rival(runs: Sequence[Run], rival: str, claim: str) -> Claim:
    """Compare our model with a rival on all corpora, counting Amazon-16 as one."""
    pairs: defaultdict[str, list[tuple[Group, Group]]] = defaultdict(list)
    for corpus in CORPORA:
        pair = find_pair(runs, corpus, rival)
        if pair:
            pairs[family_of(corpus)].append(pair)
    compared = {name: compare(*found) for name, found in pairs.items()}
    theirs = {name: _published_gain(name, rival) for name in compared}
    return _claim(claim, {name: found for name, found in compared.items() if found}, theirs)


def _published_gain(family: str, rival: str) -> float | None:
    """Return the paper's own gain over a rival in percentage points, or None."""
    figures = published().averages() if family == "amazon16" else published().accuracies(family)
    return figures["fathomer"] - figures[rival] if rival in figures else None


def _against_variant(runs: Sequence[Run], variant: str, claim: str) -> Claim:
    """Compare our model with a row of the ablation."""
    corpus = ablated_corpus(runs)
    pair = find_pair(runs, corpus, "fathomer", **variant_settings(variant))
    found = compare(pair) if pair else None
    (row,) = [row for row in published().ablation if row.variant == variant]
    return _claim(claim, {corpus: found} if found else {}, {corpus: -row.accuracy_change})


def _claim(claim: str, found: dict[str, Comparison], theirs: Mapping[str, float | None]) -> Claim:
    numbers = []
    for name, comparison in found.items():
        paper = theirs[name]
        numbers.append(f"{name}: {comparison}" + ("" if paper is None else f", paper {paper:+.2f}"))
    return Claim(claim, judge(found.values()), "; ".join(numbers))


def _speed(runs: Sequence[Run]) -> Claim:
    """Compare the speed at selected and at full depth, and the accuracy of training for each."""
    claim = f"adaptive depth is {SPEED_UP:g} times as fast as full depth, and no less accurate"
    measured: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for corpus in CORPORA:
        group = find_group(runs, corpus, "fathomer")
        if group and group.speed_up:
            measured[family_of(corpus)].append((group.speed_up, group.mean("mean_depth")))
    ratios, numbers = [], []
    for name, found in measured.items():
        ratio, depth = map(mean, zip(*found, strict=True))
        ratios.append(ratio)
        numbers.append(f"{name}: {ratio:.2f} times as fast at mean depth {depth:.2f}")
    corpus = ablated_corpus(runs)
    pair = find_pair(runs, corpus, "fathomer", **variant_settings("full_depth"))
    trained = compare(pair) if pair else None
    if not ratios or not trained:
        return Claim(claim, "not attempted", "; ".join(numbers))
    numbers.append(f"accuracy on {corpus}: {trained}")
    verdict: Verdict = "not"
    if trained.gain >= 0 or not trained.significant:
        as_fast = min(ratios) >= SPEED_UP and trained.runs >= ENOUGH_RUNS
        verdict = "reproduced" if as_fast else "partly" if min(ratios) > 1 else "not"
    return Claim(claim, verdict, "; ".join(numbers))


def _depth_where_needed(analyses: Mapping[str, Mapping[str, Any]]) -> Claim:
    """Compare the selected depths with the same depths shuffled between the words."""
    numbers, better = [], 0
    for name, found in analyses.items():
        selected, shuffled = found["accuracy"], found["dealt"]
        better += selected > max(shuffled)
        rare, frequent = (found["by_frequency"][end]["mean_depth"] for end in (0, -1))
        numbers.append(
            f"{name}: mean depth of the rarest words {rare:.2f}, of the most frequent {frequent:.2f}; accuracy "
            f"{100 * selected:.2f}, with shuffled depths {100 * min(shuffled):.2f} to {100 * max(shuffled):.2f}"
        )
    verdict: Verdict = "partly" if better else "not" if analyses else "not attempted"
    if analyses and better == len(analyses):
        verdict = "reproduced"
    return Claim("depth goes to the words that need it", verdict, "; ".join(numbers))
