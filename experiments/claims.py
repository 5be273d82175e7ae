"""What the paper claims, and what our runs say to it: computed, never written by hand."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, Literal

from experiments.groups import Comparison, Group, compare, family_of, find_group, find_pair
from experiments.published import published
from experiments.runs import Run
from experiments.tables import ROWS, ablated_corpus
from fathomer.data.datasets import CORPORA

Verdict = Literal["reproduced", "partly", "not", "not attempted"]
SPEED_UP = 3.0
ENOUGH_RUNS = 3
"""Fewer reproduce nothing: the bootstrap draws texts, and one training may be lucky."""
RULE = f"""Gains are in points of accuracy, with the middle 95 % of a paired bootstrap over the test texts.

- A gain is reproduced if it is positive in the mean over the corpora, significant (p < 0.05) on one of them in
  at least {ENOUGH_RUNS} runs, and nowhere a significant loss; partly, if it is positive in the mean and
  significant on more corpora than a loss is.
- The speed is that of a model with its selected depths, against the same model with every word at the largest.
  It is reproduced if it is {SPEED_UP:g} times as high on every corpus, partly if it is higher on every corpus;
  and in both cases only if a model trained with full depth is not significantly more accurate.
- Depth goes to the words that need it if the selected depths are better than each of ten times that the same
  depths were dealt to the words at random: on every corpus that was looked at; partly, if on some."""


@dataclass(frozen=True)
class Claim:
    """Hold a claim with the verdict and the numbers behind it."""

    claim: str
    verdict: Verdict
    numbers: str


def all_claims(
    runs: Sequence[Run], analyses: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Claim]:
    """Judge all claims, by runs and by what ``fathomer experiment depths`` has found, by name."""
    return [
        _against(runs, "s-lstm", "more accurate than S-LSTM"),
        _against(runs, "bilstm", "more accurate than a three-layer BiLSTM"),
        _against_row(runs, "Gumbel selection is better than hard selection", depth="hard"),
        _against_row(runs, "Gumbel selection is better than soft selection", depth="soft"),
        _against_row(runs, "the BiLSTM below contributes to accuracy", sequence="none"),
        _speed(runs),
        _needed(analyses or {}),
    ]


def judge(found: Collection[Comparison]) -> Verdict:
    """Judge gains, as :data:`RULE` says."""
    if not found:
        return "not attempted"
    better = [each for each in found if each.significant and each.gain > 0]
    worse = [each for each in found if each.significant and each.gain < 0]
    if len(better) <= len(worse) or mean(each.gain for each in found) <= 0:
        return "not"
    enough = any(each.runs >= ENOUGH_RUNS for each in better)
    return "reproduced" if enough and not worse else "partly"


def _against(runs: Sequence[Run], rival: str, claim: str) -> Claim:
    """Compare ours with a rival on all corpora; Amazon-16 is one of them."""
    pairs: defaultdict[str, list[tuple[Group, Group]]] = defaultdict(list)
    for corpus in CORPORA:
        pair = find_pair(runs, corpus, rival)
        if pair:
            pairs[family_of(corpus)].append(pair)
    compared = {name: compare(*found) for name, found in pairs.items()}
    theirs = {name: _published_gain(name, rival) for name in compared}
    return _claim(claim, {name: found for name, found in compared.items() if found}, theirs)


def _published_gain(family: str, rival: str) -> float | None:
    """Give by how many points ours beats a rival in the paper."""
    figures = published().averages() if family == "amazon16" else published().accuracies(family)
    return figures["fathomer"] - figures[rival] if rival in figures else None


def _against_row(runs: Sequence[Run], claim: str, **changed: Any) -> Claim:
    corpus = ablated_corpus(runs)
    pair = find_pair(runs, corpus, "fathomer", **changed)
    found = compare(pair) if pair else None
    variant = published().ablation[ROWS.index(changed)]
    return _claim(claim, {corpus: found} if found else {}, {corpus: -variant.accuracy_change})


def _claim(claim: str, found: dict[str, Comparison], theirs: Mapping[str, float | None]) -> Claim:
    numbers = []
    for name, comparison in found.items():
        paper = theirs[name]
        numbers.append(f"{name}: {comparison}" + ("" if paper is None else f", paper {paper:+.2f}"))
    return Claim(claim, judge(found.values()), "; ".join(numbers))


def _speed(runs: Sequence[Run]) -> Claim:
    """Compare the selected depths with all words at the largest; and training for it with training so."""
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
    pair = find_pair(runs, corpus, "fathomer", depth="full")
    trained = compare(pair) if pair else None
    if not ratios or not trained:
        return Claim(claim, "not attempted", "; ".join(numbers))
    numbers.append(f"accuracy on {corpus}: {trained}")
    verdict: Verdict = "not"
    if trained.gain >= 0 or not trained.significant:
        as_fast = min(ratios) >= SPEED_UP and trained.runs >= ENOUGH_RUNS
        verdict = "reproduced" if as_fast else "partly" if min(ratios) > 1 else "not"
    return Claim(claim, verdict, "; ".join(numbers))


def _needed(analyses: Mapping[str, Mapping[str, Any]]) -> Claim:
    """Compare the selected depths with the same depths dealt to the words at random."""
    numbers, better = [], 0
    for name, found in analyses.items():
        selected, dealt = found["accuracy"], found["dealt"]
        better += selected > max(dealt)
        rare, frequent = (found["by_frequency"][end]["mean_depth"] for end in (0, -1))
        numbers.append(
            f"{name}: the rarest words read to {rare:.2f}, the most frequent to {frequent:.2f}; accuracy "
            f"{100 * selected:.2f}, dealt at random {100 * min(dealt):.2f} to {100 * max(dealt):.2f}"
        )
    verdict: Verdict = "partly" if better else "not" if analyses else "not attempted"
    if analyses and better == len(analyses):
        verdict = "reproduced"
    return Claim("depth goes to the words that need it", verdict, "; ".join(numbers))
