"""RESULTS.md: all tables, figures and verdicts, generated from the runs and nothing else."""

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from experiments.claims import RULE, Claim, all_claims
from experiments.figures import draw_figures, figure_tables
from experiments.groups import MARKS, family_of, find_group
from experiments.published import published
from experiments.runs import Run, read_runs
from experiments.tables import NOTHING, Table, all_tables
from fathomer.data.datasets import CORPORA
from fathomer.files import write_atomically

TABLES, FIGURES, DEPTHS = "tables", "figures", "depths"

_OPENING = """# Results

What the paper says, and what {count} runs of this implementation say. This page is generated
from `results` by `fathomer experiment report` and never edited.

## What was and was not reproduced

{summary}

| claim of the paper | verdict | our numbers |
|---|---|---|
{claims}

{rule}

## How to read the tables

A cell of ours is the mean accuracy in percent ± the standard deviation over seeds or folds, and in
brackets the number of runs; "–": not run, or not published. Letters mark what differs from the paper:

{legend}

Vectors of these runs: {vectors}. All models have the same settings on a corpus. `docs/log.md` says how they
were chosen: mostly with our model, on held-out texts, and by the time that they take. A model that wants
others, above all a Transformer, is weaker here than it could be. Models also have the same hidden size, where
the paper made their parameters alike: the column "size" below says how many a rival has. Few epochs hold all of
them back.
{sources}"""


def results_page(results: Path, *, beside: Path) -> str:
    """Write the page from the runs in a folder; ``beside`` is the folder that the page will be in."""
    runs = read_runs(results)
    claims = judged(results)
    rows = [f"| {c.claim} | {c.verdict} | {c.numbers or NOTHING} |" for c in claims]
    opening = _OPENING.format(
        count=f"{len(runs):,}",
        summary="\n".join([*_summary(claims), *_standing(runs)]),
        rule=RULE,
        claims="\n".join(rows),
        vectors=", ".join(sorted({f"`{run.vectors}`" for run in runs if run.vectors})) or NOTHING,
        legend="\n".join(f"- `{letter}`: {meaning}" for letter, meaning in MARKS.items()),
        sources=_sources(runs),
    )
    tables = [table.to_markdown() for table in all_tables(runs)]
    figures = _figures(runs, _link(results / FIGURES, beside))
    analysed = [
        _analysis(found, results / DEPTHS / f"{name}.png", beside)
        for name, found in read_analyses(results).items()
    ]
    return "\n".join([opening, *tables, *figures, *_depths(runs), *analysed])


def judged(results: Path) -> list[Claim]:
    """Judge the paper's claims by all that a folder of results holds."""
    return all_claims(read_runs(results), read_analyses(results))


def read_analyses(results: Path) -> dict[str, dict[str, Any]]:
    """Read what `fathomer experiment depths --json` has found, by the names of the files."""
    paths = sorted((results / DEPTHS).glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def write_results(results: Path, out: Path, *, draw: bool = True) -> list[Path]:
    """Write the page, the tables as CSV, and the figures; give their paths."""
    runs = read_runs(results)
    written = [out]
    write_atomically(out, results_page(results, beside=out.parent))
    (results / TABLES).mkdir(parents=True, exist_ok=True)
    for table in (*all_tables(runs), *figure_tables(runs)):
        path = results / TABLES / f"{table.name}.csv"
        write_atomically(path, table.to_csv())
        written.append(path)
    return [*written, *(draw_figures(runs, results / FIGURES) if draw else [])]


def _summary(claims: Sequence[Claim]) -> list[str]:
    """Say in a few sentences how the claims fared."""
    words = {
        "reproduced": "Reproduced",
        "partly": "Partly reproduced",
        "not": "Not reproduced",
        "not attempted": "Not attempted",
    }
    lines = []
    for verdict, word in words.items():
        named = [claim.claim for claim in claims if claim.verdict == verdict]
        if named:
            lines.append(f"- {word}: {'; '.join(named)}.")
    return lines


def _standing(runs: Sequence[Run]) -> list[str]:
    """Say how far ours is from the paper's own accuracy, on all of Amazon-16 in the mean."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for corpus in CORPORA:
        group = find_group(runs, corpus, "fathomer")
        if group:
            theirs = published().accuracies(corpus)["fathomer"]
            part = " (with a part of the training texts)" if "p" in group.marks else ""
            name = family_of(corpus) + part
            found[name].append(100 * group.mean("accuracy") - theirs)
    if not found:
        return []
    shown = ", ".join(f"{corpus} {mean(gaps):+.2f}" for corpus, gaps in found.items())
    return [f"- Our accuracy against the paper's own, in points: {shown}."]


def _sources(runs: Sequence[Run]) -> str:
    """Say where a run's commit does not name its sources completely."""
    dirty = sum(str(run.commit).endswith("-dirty") for run in runs)
    return (
        f"{dirty} runs were made with changes that were committed later: their `commit` ends in `-dirty`.\n"
        if dirty
        else ""
    )


def _link(folder: Path, beside: Path) -> str:
    return Path(os.path.relpath(folder, beside)).as_posix()


def _figures(runs: Sequence[Run], folder: str) -> list[str]:
    """Show the figures that the runs suffice for, with the numbers behind them."""
    return [
        f"{table.to_markdown()}\n![{table.title}]({folder}/{table.name}.png)\n"
        for table in figure_tables(runs)
    ]


def _depths(runs: Sequence[Run]) -> list[str]:
    """Say how deep words are read, in training and at prediction, and what forcing depths does."""
    rows = []
    for corpus in sorted({run.corpus for run in runs if run.model == "fathomer"}):
        group = find_group(runs, corpus, "fathomer")
        if group is None:
            continue
        forced = ", ".join(f"{depth:g}: {found:.2%}" for depth, found in group.forced.items())
        sampled = f"{group.mean('mean_depth_sampled'):.2f}"
        selected = _spread([run.mean_depth for run in group.runs])
        faster = f"{group.speed_up:.2f}" if group.speed_up else NOTHING
        name = f"{corpus} ({len(group.runs)}) {group.marks}".rstrip()
        accuracy = f"{group.mean('accuracy'):.2%}"
        rows.append([name, sampled, selected, faster, accuracy, forced or NOTHING])
    if not rows:
        return []
    header = [
        "corpus",
        "sampled in training",
        "selected at prediction",
        "faster",
        "accuracy",
        "all words forced",
    ]
    note = (
        "Mean depths, of at most 9, and of several runs the lowest and the highest: were depths drawn evenly, "
        "their mean would be 5. Faster: how many times as fast a model predicts as the same model with every "
        "word at depth 9, both timed in the same run. The last two columns are the accuracy with the "
        "selected depths, and with every word at the same depth."
    )
    return [Table("depths", "How deep words are read", header, rows, note).to_markdown()]


def _spread(values: Sequence[float]) -> str:
    """Write a mean and what it is the mean of.

    >>> _spread([2.5]), _spread([2.5, 7.5])
    ('2.50', '5.00 (2.50 to 7.50)')
    """
    shown = f"{mean(values):.2f}"
    return f"{shown} ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else shown


def _analysis(found: Mapping[str, Any], picture: Path, beside: Path) -> str:
    """Say which words are read deeply, and show the picture that stands beside what was found."""
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
        _words_note(found),
    )
    link = f"\n![mean depth of words]({_link(picture, beside)})\n" if picture.exists() else ""
    return table.to_markdown() + link


def _words_note(found: Mapping[str, Any]) -> str:
    lines = [f"{found['words']:,} words, mean depth {found['mean_depth']:.2f}."]
    if found.get("model"):
        fold = f", fold {found['fold']} of {found['folds']}" if "fold" in found else ""
        lines.insert(0, f"Texts: {found['data_name']}{fold}. Model: `{found['model']}`.")
    correlation = found["frequency_correlation"]
    if correlation is not None:
        rare, frequent = found["by_frequency"][0], found["by_frequency"][-1]
        lines[-1] += (
            f" The rarest ({rare['name']} in these texts) are read to "
            f"{rare['mean_depth']:.2f}, the most frequent ({frequent['name']}) to "
            f"{frequent['mean_depth']:.2f}. Rank correlation of frequency and mean depth, over the "
            f"different words: {correlation:+.3f}."
        )
    lines.append(_worth(found["accuracy"], found["dealt"]))
    curve = ", ".join(f"{row['depth']}: {row['accuracy']:.2%}" for row in found["forced"])
    lines.append(f"With every word at the same depth: {curve}.")
    for kind in ("deepest", "shallowest"):
        words = ", ".join(f"{row['name']} ({row['mean_depth']:.1f})" for row in found[kind])
        alike = found[kind][0]["mean_depth"] == found[kind][-1]["mean_depth"]
        some = ", of all that share a depth" if alike else ""
        lines.append(f"The {kind} frequent words{some}: {words}.")
    return "\n\n".join(lines)


def _worth(selected: float, dealt: Sequence[float]) -> str:
    """Say what it is worth that the words have their own depths, and not each other's."""
    chance = f"by chance, that happens once in {len(dealt) + 1} times"
    if selected > max(dealt):
        verdict = f"The selected depths are better than each of these ({chance})"
    elif selected < min(dealt):
        verdict = f"The selected depths are worse than each of these ({chance})"
    else:
        verdict = "No sign that it matters which word has which depth"
    return (
        f"Accuracy with the selected depths: {selected:.2%}. With the same depths dealt to the words at "
        f"random, {len(dealt)} times: {min(dealt):.2%} to {max(dealt):.2%}, {mean(dealt):.2%} in the mean. "
        f"{verdict}."
    )
