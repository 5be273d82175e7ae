"""RESULTS.md: all tables, figures and verdicts, generated from the runs and nothing else."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from fathomer.files import write_atomically
from fathomer.lab.claims import Claim, all_claims
from fathomer.lab.figures import KINDS, Sweep, curve, draw_figures, find_sweep, sampled_run
from fathomer.lab.groups import MARKS, find_group
from fathomer.lab.runs import Run, read_runs
from fathomer.lab.tables import NOTHING, Table, all_tables

TABLES, FIGURES, DEPTHS = "tables", "figures", "depths"

_OPENING = """# Results

What the paper says, and what {count} runs of this implementation say. This page is generated
from `results/runs` by `fathomer experiment report` and never edited.

## What was and was not reproduced

{summary}

| claim of the paper | verdict | our numbers |
|---|---|---|
{claims}

Gains are in points of accuracy, with the middle 95 % of a paired bootstrap.

## How to read the tables

A cell of ours is the mean accuracy in percent ± the standard deviation over seeds or folds, and in
brackets the number of runs; "–": not run, or not published. Letters mark what differs from the paper:

{legend}

Vectors of these runs: {vectors}.
"""


def results_page(results: Path, *, beside: Path) -> str:
    """Write the page from the runs in a folder; ``beside`` is the folder that the page will be in."""
    runs = read_runs(results)
    claims = all_claims(runs)
    rows = [f"| {c.claim} | {c.verdict} | {c.numbers or NOTHING} |" for c in claims]
    opening = _OPENING.format(
        count=f"{len(runs):,}",
        summary=_summary(claims),
        claims="\n".join(rows),
        vectors=", ".join(sorted({f"`{run.vectors}`" for run in runs if run.vectors})) or NOTHING,
        legend="\n".join(f"- `{letter}`: {meaning}" for letter, meaning in MARKS.items()),
    )
    tables = [table.to_markdown() for table in all_tables(runs)]
    figures = _figures(runs, _link(results / FIGURES, beside))
    analysed = [_analysis(path, beside) for path in sorted((results / DEPTHS).glob("*.json"))]
    return "\n".join([opening, *tables, *figures, *_depths(runs), *analysed])


def write_results(results: Path, out: Path, *, draw: bool = True) -> list[Path]:
    """Write the page, the tables as CSV, and the figures; give their paths."""
    runs = read_runs(results)
    written = [out]
    write_atomically(out, results_page(results, beside=out.parent))
    (results / TABLES).mkdir(parents=True, exist_ok=True)
    for table in all_tables(runs):
        path = results / TABLES / f"{table.name}.csv"
        write_atomically(path, table.to_csv())
        written.append(path)
    return [*written, *(draw_figures(runs, results / FIGURES) if draw else [])]


def _summary(claims: Sequence[Claim]) -> str:
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
            lines.append(f"{word}: {'; '.join(named)}.")
    return "\n".join(lines)


def _link(folder: Path, beside: Path) -> str:
    return Path(os.path.relpath(folder, beside)).as_posix()


def _figures(runs: Sequence[Run], folder: str) -> list[str]:
    """Show the figures that the runs suffice for, and the numbers behind the first."""
    parts = []
    sweep = find_sweep(runs)
    if sweep:
        parts.append(_sweep(runs, sweep).to_markdown())
        parts.append(f"![accuracy and speed against L]({folder}/figure3.png)\n")
    run = sampled_run(runs)
    if run:
        numbers = " and ".join(str(sample["number"]) for sample in run.samples)
        parts.append(
            f"## Figure 4: depths in two texts\n\nTest texts {numbers} of {run.corpus}, read by the model of "
            f"`{run.name}`.\n\n![depths of the words of two texts]({folder}/figure4.png)\n"
        )
    return parts


def _sweep(runs: Sequence[Run], sweep: Sweep) -> Table:
    names = ("accuracy", "predict_words_per_second", "mean_depth")
    found = {(k, n): curve(runs, sweep, k, n) for k in KINDS for n in names}
    depths = sorted({depth for points in found.values() for depth in points})
    rows = []
    for depth in depths:
        cells = [str(depth)]
        for kind in KINDS:
            for name, form in zip(names, ("{:.2%}", "{:,.0f}", "{:.2f}"), strict=True):
                points = found[kind, name]
                cells.append(form.format(points[depth]) if depth in points else NOTHING)
        rows.append(cells)
    header = [
        "L",
        *(f"{kind}, {part}" for kind in KINDS for part in ("accuracy", "words/s", "depth")),
    ]
    return Table("figure3", f"Figure 3: the largest depth ({sweep})", header, rows)


def _depths(runs: Sequence[Run]) -> list[str]:
    """Say how deep words are read, in training and at prediction, and what forcing depths does."""
    rows = []
    for corpus in sorted({run.corpus for run in runs if run.model == "fathomer"}):
        group = find_group(runs, corpus, "fathomer")
        if group is None:
            continue
        run = group.runs[0]
        forced = ", ".join(f"{row['depth']:g}: {row['accuracy']:.2%}" for row in run.forced)
        shown = [f"{group.mean(name):.2f}" for name in ("mean_depth_sampled", "mean_depth")]
        rows.append([corpus, *shown, _speed_up(run), f"{run.accuracy:.2%}", forced or NOTHING])
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
        "Mean depths, of at most 9: were depths drawn evenly, their mean would be 5. The other columns are "
        "of one run: how many times as fast it predicts as the same model with every word at depth 9; its "
        "accuracy with the selected depths, and with every word at the same depth."
    )
    return [Table("depths", "How deep words are read", header, rows, note).to_markdown()]


def _speed_up(run: Run) -> str:
    """Compare the speed with the selected depths and with every word at the largest."""
    full = [row for row in run.forced if row["depth"] == run.recipe.model.max_depth]
    return f"{run.predict_words_per_second / full[0]['words_per_second']:.2f}" if full else NOTHING


def _analysis(path: Path, beside: Path) -> str:
    """Say which words are read deeply, as `fathomer experiment depths --json` has found."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        [kind.removeprefix("by_"), *(f"{r['name']}: {r['mean_depth']:.2f}" for r in found[kind])]
        for kind in ("by_frequency", "by_length", "by_position", "by_vocabulary")
    ]
    width = max(map(len, rows))
    table = Table(
        path.stem,
        f"Which words are read deeply: {path.stem}",
        ["words by", *["mean depth"] * (width - 1)],
        [row + [""] * (width - len(row)) for row in rows],
        _words_note(found),
    )
    picture = path.with_suffix(".png")
    link = f"\n![mean depth of words]({_link(picture, beside)})\n" if picture.exists() else ""
    return table.to_markdown() + link


def _words_note(found: dict[str, Any]) -> str:
    lines = [f"{found['words']:,} words of the test texts, mean depth {found['mean_depth']:.2f}."]
    correlation = found["frequency_correlation"]
    if correlation is not None:
        lines[0] += (
            " Rank correlation of a word's frequency in these texts with its mean depth: "
            f"{correlation:+.3f}; words that are rare here are read {_deeper(correlation)}."
        )
    lines.append(_worth(found["accuracy"], found["dealt"]))
    for kind in ("deepest", "shallowest"):
        words = ", ".join(f"{row['name']} ({row['mean_depth']:.1f})" for row in found[kind])
        lines.append(f"The {kind} frequent words: {words}.")
    return "\n\n".join(lines)


def _worth(selected: float, dealt: Sequence[float]) -> str:
    """Say what it is worth that the words have their own depths, and not each other's."""
    verdict = (
        "it matters which word has which depth"
        if selected > max(dealt)
        else "it makes no difference which word has which depth"
    )
    return (
        f"Accuracy with the selected depths: {selected:.2%}. With the same depths dealt to the words at "
        f"random, {len(dealt)} times: {min(dealt):.2%} to {max(dealt):.2%}, {mean(dealt):.2%} in the mean; "
        f"{verdict}."
    )


def _deeper(correlation: float) -> str:
    if abs(correlation) < 0.1:
        return "about as deeply as others"
    return "more deeply" if correlation < 0 else "less deeply"
