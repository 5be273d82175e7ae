"""The part of RESULTS.md on depths: how deep words are read, and which words are deep."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from experiments.groups import Group, find_group
from experiments.runs import Run
from experiments.tables import NOTHING, Table


def depths_table(runs: Sequence[Run]) -> Table | None:
    """Return the table of mean depths and of accuracies at forced depths; None without runs."""
    corpora = sorted({run.corpus for run in runs if run.model == "fathomer"})
    groups = [find_group(runs, corpus, "fathomer") for corpus in corpora]
    rows = [_depths_row(group) for group in groups if group]
    if not rows:
        return None
    header = [
        "corpus", "sampled in training", "selected at prediction", "speed-up", "accuracy",
        "every word at one depth",
    ]  # fmt: skip
    note = (
        "Mean depths, of at most 9; over several runs also the lowest and the highest. Uniformly drawn depths "
        "would have a mean of 5. Speed-up: speed of prediction relative to the same model with every word at "
        "depth 9, timed in the same run. The last two columns show the accuracy with the selected depths and "
        "with every word at the same depth."
    )
    return Table("depths", "How deep words are read", header, rows, note)


def _depths_row(group: Group) -> list[str]:
    forced = ", ".join(
        f"{depth:g}: {share:.2%}" for depth, share in group.forced_accuracies.items()
    )
    return [
        f"{group.runs[0].corpus} ({len(group.runs)}) {group.marks}".rstrip(),
        f"{group.mean('mean_depth_sampled'):.2f}",
        _mean_and_range([run.mean_depth for run in group.runs]),
        f"{group.speed_up:.2f}" if group.speed_up else NOTHING,
        f"{group.mean('accuracy'):.2%}",
        forced or NOTHING,
    ]


def _mean_and_range(values: Sequence[float]) -> str:
    """Return the mean of some values, with their range if there are several.

    >>> _mean_and_range([2.5]), _mean_and_range([2.5, 7.5])
    ('2.50', '5.00 (2.50 to 7.50)')
    """
    shown = f"{mean(values):.2f}"
    return f"{shown} ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else shown


def analysis_section(found: Mapping[str, Any], picture: Path, beside: Path) -> str:
    """Return the section of a depth analysis, with its picture if there is one."""
    rows = [
        [kind.removeprefix("by_"), *(f"{r['name']}: {r['mean_depth']:.2f}" for r in found[kind])]
        for kind in ("by_frequency", "by_length", "by_position", "by_vocabulary")
    ]
    width = max(map(len, rows))
    table = Table(
        picture.stem,
        f"Which words are read deeply: {picture.stem}",
        ["words by", *["mean depth"] * (width - 1)],
        [row + [""] * (width - len(row)) for row in rows],
        "\n\n".join(_analysis_notes(found)),
    )
    link = relative_link(picture, beside)
    return table.to_markdown() + (f"\n![mean depth of words]({link})\n" if picture.exists() else "")


def relative_link(path: Path, beside: Path) -> str:
    """Return the link to a file from a page in another folder."""
    return Path(os.path.relpath(path, beside)).as_posix()


def _analysis_notes(found: Mapping[str, Any]) -> list[str]:
    """Return the paragraphs below the table of an analysis."""
    notes = []
    if found.get("model"):
        fold = f", fold {found['fold']} of {found['folds']}" if "fold" in found else ""
        notes.append(f"Texts: {found['data_name']}{fold}. Model: `{found['model']}`.")
    notes.append(
        f"{found['words']:,} words, mean depth {found['mean_depth']:.2f}.{_frequency(found)}"
    )
    notes.append(describe_shuffling(found["accuracy"], found["dealt"]))
    forced = ", ".join(f"{row['depth']}: {row['accuracy']:.2%}" for row in found["forced"])
    notes.append(f"Accuracy with every word at the same depth: {forced}.")
    for kind in ("deepest", "shallowest"):
        words = ", ".join(f"{row['name']} ({row['mean_depth']:.1f})" for row in found[kind])
        tied = found[kind][0]["mean_depth"] == found[kind][-1]["mean_depth"]
        some = " (some of those with the same depth)" if tied else ""
        notes.append(f"The {kind} frequent words{some}: {words}.")
    return notes


def _frequency(found: Mapping[str, Any]) -> str:
    """Describe the relation of frequency and depth, unless one of them is constant."""
    correlation = found["frequency_correlation"]
    if correlation is None:
        return ""
    rare, frequent = found["by_frequency"][0], found["by_frequency"][-1]
    return (
        f" The rarest words ({rare['name']} in these texts) have a mean depth of {rare['mean_depth']:.2f}, "
        f"the most frequent ({frequent['name']}) one of {frequent['mean_depth']:.2f}. Rank correlation of "
        f"frequency and mean depth over the distinct words: {correlation:+.3f}."
    )


def describe_shuffling(selected: float, shuffled: Sequence[float]) -> str:
    """Compare the accuracy at the selected depths with that at the same depths, shuffled."""
    chance = f"by chance, this happens once in {len(shuffled) + 1} times"
    if selected > max(shuffled):
        verdict = f"The selected depths are better than all of them ({chance})"
    elif selected < min(shuffled):
        verdict = f"The selected depths are worse than all of them ({chance})"
    else:
        verdict = "There is no sign that it matters which word has which depth"
    return (
        f"Accuracy with the selected depths: {selected:.2%}. With the same depths shuffled between the words, "
        f"{len(shuffled)} times: {min(shuffled):.2%} to {max(shuffled):.2%}, {mean(shuffled):.2%} on average. "
        f"{verdict}."
    )
