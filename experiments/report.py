"""RESULTS.md: all tables, figures and verdicts, generated from the runs alone."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from experiments.ablation import table4
from experiments.alternatives import Measured, alternatives_table, read_measured
from experiments.alternatives import draw as draw_alternatives
from experiments.claims import RULE, Claim, all_claims
from experiments.depth_curves import read_trials
from experiments.depth_curves_output import curves_table, draw_curves
from experiments.depth_report import analysis_section, depths_table, relative_link
from experiments.figures import draw_figures, figure_tables
from experiments.groups import MARKS, family_of, find_group
from experiments.overview import overview, standing
from experiments.published import published
from experiments.runs import Run, read_runs
from experiments.tables import NOTHING, Table, significance, table1, table2, table3
from fathomer.data.datasets import CORPORA
from fathomer.files import write_atomically

TABLES, FIGURES, DEPTHS = "tables", "figures", "depths"
ALTERNATIVES = "alternatives.jsonl"
"""Results of ``python -m experiments alternatives``."""
CURVES = "curves.jsonl"
"""Results of ``python -m experiments curves``."""
FIRST = "2026-11-first"
"""Folder of the results of the first version."""
_VERDICTS = {
    "reproduced": "reproduced",
    "partly": "partly reproduced",
    "not": "not reproduced",
    "not attempted": "not attempted",
}

_OPENING = """# Results

The paper's figures next to those of {count} runs of this implementation. This page is generated from
`{folder}` by `python -m experiments report`; do not edit it.{first}

{overview}
{standing}
## What was and was not reproduced

Quotation marks enclose the paper's claims, in our words.

{summary}

| claim of the paper | verdict | our numbers |
|---|---|---|
{claims}

{rule}

## How to read the tables

Our cells show the mean accuracy in percent ± the standard deviation over seeds or folds, with the number
of runs in brackets; "–" means not run or not published. Letters mark differences from the paper:

{legend}

Word vectors of these runs: {vectors}. On each corpus all models have the settings that `fathomer train` chooses
for a corpus of its size, and rivals about as many parameters as ours. The settings were found with our model,
on held-out texts (`docs/log.md`). Some rivals have a learning rate of their own, or more epochs, found in the
same way (`docs/models.md`); of the others, only the BiLSTM was searched.
{sources}"""


def results_page(results: Path, *, beside: Path) -> str:
    """Return the page for a folder of results; ``beside`` is the folder that will hold the page."""
    runs, measured = read_runs(results), read_measured(results / ALTERNATIVES)
    claims = judge_results(results)
    rows = [f"| {_quote(c)} | {_VERDICTS[c.verdict]} | {c.numbers or NOTHING} |" for c in claims]
    opening = _OPENING.format(
        count=f"{len(runs):,}",
        folder=relative_link(results, beside),
        first=_first_results(results, beside),
        overview=overview(runs, measured).to_markdown(),
        standing="".join(f"{line}\n" for line in standing(runs)),
        summary="\n".join([*_summary(claims), *_gaps(runs)]),
        rule=RULE,
        claims="\n".join(rows),
        vectors=", ".join(sorted({f"`{run.vectors}`" for run in runs if run.vectors})) or NOTHING,
        legend="\n".join(f"- `{letter}`: {meaning}" for letter, meaning in MARKS.items()),
        sources=_uncommitted(runs),
    )
    tables = [table.to_markdown() for table in all_tables(runs, measured)[1:]]
    folder = relative_link(results / FIGURES, beside)
    if measured:
        tables.append(_with_picture(alternatives_table(measured), folder))
    figures = [_with_picture(table, folder) for table in figure_tables(runs)]
    depths = depths_table(runs)
    sections = [depths.to_markdown()] if depths else []
    if trials := read_trials(results / CURVES):
        sections.append(_with_picture(curves_table(trials), folder))
    sections += [
        analysis_section(found, results / DEPTHS / f"{name}.png", beside)
        for name, found in read_analyses(results).items()
    ]
    return "\n".join([opening, *tables, *figures, *sections])


def all_tables(runs: Sequence[Run], measured: Sequence[Measured]) -> list[Table]:
    """Return the paper's tables and the comparisons with all rivals."""
    return [
        overview(runs, measured),
        table1(),
        table2(runs),
        table3(runs),
        table4(runs),
        significance(runs),
    ]


def judge_results(results: Path) -> list[Claim]:
    """Judge the paper's claims by everything in a folder of results."""
    return all_claims(read_runs(results), read_analyses(results))


def read_analyses(results: Path) -> dict[str, dict[str, Any]]:
    """Read the outputs of ``python -m experiments depths --json`` by the names of their files."""
    paths = sorted((results / DEPTHS).glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def write_results(results: Path, out: Path) -> list[Path]:
    """Write the page, the tables as CSV and the figures; return their paths."""
    runs, measured = read_runs(results), read_measured(results / ALTERNATIVES)
    trials = read_trials(results / CURVES)
    written = [out]
    write_atomically(out, results_page(results, beside=out.parent))
    (results / TABLES).mkdir(parents=True, exist_ok=True)
    further = [curves_table(trials)] if trials else []
    for table in (*all_tables(runs, measured), *figure_tables(runs), *further):
        path = results / TABLES / f"{table.name}.csv"
        write_atomically(path, table.to_csv())
        written.append(path)
    figures = results / FIGURES
    written += draw_figures(runs, figures)
    if measured:
        written.append(draw_alternatives(measured, figures / "alternatives.png"))
    if trials:
        written.append(draw_curves(trials, figures / "curves.png"))
    return written


def _summary(claims: Sequence[Claim]) -> list[str]:
    """Return one line per verdict with the claims that have it."""
    lines = []
    for verdict, title in _VERDICTS.items():
        named = [_quote(claim) for claim in claims if claim.verdict == verdict]
        if named:
            lines.append(f"- {title.capitalize()}: {'; '.join(named)}.")
    return lines


def _quote(claim: Claim) -> str:
    """Return a claim as the page shows it; its wording in ``report --json`` is fixed."""
    return f'"{claim.claim.replace("the BiLSTM below", "the BiLSTM under the S-LSTM")}"'


def _gaps(runs: Sequence[Run]) -> list[str]:
    """Return a line with the gaps between our accuracies and the paper's; Amazon-16 is averaged."""
    gaps: defaultdict[str, list[float]] = defaultdict(list)
    for corpus in CORPORA:
        group = find_group(runs, corpus, "fathomer")
        if group:
            theirs = published().accuracies(corpus)["fathomer"]
            part = " (with part of the training texts)" if "p" in group.marks else ""
            gaps[family_of(corpus) + part].append(100 * group.mean("accuracy") - theirs)
    if not gaps:
        return []
    shown = ", ".join(f"{name} {mean(values):+.2f}" for name, values in gaps.items())
    return [f"- Our accuracy minus the paper's, in percentage points: {shown}."]


def _first_results(results: Path, beside: Path) -> str:
    """Return a remark on older results, if there are any."""
    page = results / FIRST / "RESULTS.md"
    if not page.exists():
        return ""
    return (
        " Not all runs\nhave been made yet. Older results, of a version that learned less, are in "
        f"[their own page]({relative_link(page, beside)})."
    )


def _uncommitted(runs: Sequence[Run]) -> str:
    """Return a line with the number of runs whose sources had uncommitted changes."""
    dirty = sum(str(run.commit).endswith("-dirty") for run in runs)
    return (
        f"{dirty} runs were made before all changes were committed: their `commit` ends in `-dirty`.\n"
        if dirty
        else ""
    )


def _with_picture(table: Table, folder: str) -> str:
    """Return a table and the picture of its name."""
    return f"{table.to_markdown()}\n![{table.title}]({folder}/{table.name}.png)\n"
