"""An evaluation report as a self-contained HTML page, and its confusion matrix as a PNG."""

import html
import warnings
from io import BytesIO

from fathomer.errors import require
from fathomer.evaluate.label_words import LabelWords
from fathomer.evaluate.metrics import shown_depth
from fathomer.evaluate.report import Report, one_line
from fathomer.html_page import html_page

MATRIX_LABELS = 40
"""A larger matrix shows only the labels with the most mistakes."""
LABEL_CHARACTERS = 30
NUMBERED_CELLS = 20
"""With more labels than this, the cells of the picture have no numbers."""


def report_page(report: Report, *, title: str, words: LabelWords | None = None) -> str:
    """Return the whole report as an HTML page, with the ``words`` that push towards each label."""
    metrics = report.metrics
    scores = [
        ["examples", f"{metrics.examples:,}"],
        ["accuracy", f"{metrics.accuracy:.4f}"],
        ["macro F1", f"{metrics.macro_f1:.4f}"],
        ["mean depth", shown_depth(metrics.mean_depth)],
    ]
    unseen = report.unseen
    if unseen and unseen.accuracy is not None and unseen.examples < metrics.examples:
        scores += [
            ["examples not in the training set", f"{unseen.examples:,}"],
            ["accuracy on these examples", f"{unseen.accuracy:.4f}"],
        ]
    sections = [
        f"<h1>{html.escape(title)}</h1>",
        _table([], scores),
        "<h2>Labels</h2>",
        _labels(report),
        "<h2>Confusion matrix</h2>",
        f"<p>{_matrix_caption(report)}</p>",
        _matrix(report),
        *_confusions(report),
        "<h2>Accuracy by length</h2>",
        _by_length(report),
        *([] if words is None else _label_words(words)),
        "<h2>Worst mistakes</h2>",
        _mistakes(report),
    ]
    return html_page(html.escape(title), "\n".join(sections), style=_STYLE)


def _matrix_caption(report: Report) -> str:
    """Return the caption of the confusion matrix."""
    caption = "Rows: true label. Columns: predicted label."
    if len(report.labels) > MATRIX_LABELS:
        caption += f" The {MATRIX_LABELS} of {len(report.labels):,} labels with the most mistakes."
    return caption


def confusion_png(report: Report) -> bytes:
    """Draw the confusion matrix; the shade is the share of the true label's texts."""
    require("matplotlib", "plots")
    from matplotlib.figure import Figure  # pyplot would keep global state

    shown = report.most_confused(MATRIX_LABELS)
    counts = [[report.confusion.get(row, {}).get(column, 0) for column in shown] for row in shown]
    shares = [
        [count / _support(report, label) for count in row]
        for label, row in zip(shown, counts, strict=True)
    ]
    side = 3 + 0.45 * len(shown)
    figure = Figure(figsize=(side + 1, side), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    names = [one_line(label, characters=LABEL_CHARACTERS) for label in shown]
    # A dollar sign in a label does not start a formula.
    axes.set_xticks(range(len(shown)), names, rotation=45, ha="right", parse_math=False)
    axes.set_yticks(range(len(shown)), names, parse_math=False)
    axes.set_xlabel("predicted label")
    axes.set_ylabel("true label")
    figure.colorbar(image, label="share of the true label's texts", shrink=0.8)
    if len(shown) <= NUMBERED_CELLS:
        for row, line in enumerate(counts):
            for column, count in enumerate(line):
                colour = "white" if shares[row][column] > 0.5 else "black"
                axes.text(column, row, f"{count:,}", ha="center", va="center", color=colour)
    content = BytesIO()
    with warnings.catch_warnings():  # characters missing from the font are drawn as boxes
        warnings.simplefilter("ignore")
        figure.savefig(content, format="png")
    return content.getvalue()


def _support(report: Report, label: str) -> int:
    return max(1, report.metrics.per_label[label].support)


def _table(header: list[str], rows: list[list[str]]) -> str:
    """Return an HTML table of plain texts; the first cell of each row is its heading."""
    head = "".join(f"<th scope=col>{html.escape(cell)}</th>" for cell in header)
    body = "\n".join(
        f"<tr><th scope=row>{html.escape(first)}</th>"
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return f"<div class=wide><table>\n<tr>{head}</tr>\n{body}\n</table></div>"


def _labels(report: Report) -> str:
    rows = [
        [label, f"{s.precision:.4f}", f"{s.recall:.4f}", f"{s.f1:.4f}", f"{s.support:,}"]
        for label, s in report.metrics.per_label.items()
    ]
    return _table(["label", "precision", "recall", "F1", "support"], rows)


def _matrix(report: Report) -> str:
    shown = report.most_confused(MATRIX_LABELS)
    names = {label: html.escape(one_line(label, characters=LABEL_CHARACTERS)) for label in shown}
    head = "".join(f"<th scope=col>{names[label]}</th>" for label in shown)
    lines = []
    for label in shown:
        row = report.confusion.get(label, {})
        cells = "".join(
            f'<td class="{"right" if column == label else "wrong"}" '
            f'style="--share:{row.get(column, 0) / _support(report, label):.3f}">'
            f"{row.get(column, 0):,}</td>"
            for column in shown
        )
        lines.append(f"<tr><th scope=row>{names[label]}</th>{cells}</tr>")
    body = "\n".join(lines)
    return (
        f'<div class=wide><table class="matrix">\n<tr><td></td>{head}</tr>\n{body}\n</table></div>'
    )


def _confusions(report: Report) -> list[str]:
    """Return the most frequent confusions, which are hard to see in a large matrix."""
    found = report.confusions[:10]
    if len(report.labels) <= 10 or not found:
        return []
    rows = [
        [
            pair.label,
            pair.predicted,
            f"{pair.count:,}",
            f"{pair.count / _support(report, pair.label):.1%}",
        ]
        for pair in found
    ]
    header = ["true label", "predicted label", "texts", "share of the true label's texts"]
    return ["<h2>Most frequent confusions</h2>", _table(header, rows)]


def _by_length(report: Report) -> str:
    rows = [
        [
            f"{group.shortest:,}–{group.longest:,}",
            f"{group.examples:,}",
            f"{group.accuracy:.4f}",
            shown_depth(group.mean_depth),
        ]
        for group in report.by_length
    ]
    return _table(["words", "examples", "accuracy", "mean depth"], rows)


def _label_words(words: LabelWords) -> list[str]:
    """Return the words that push most towards each label; a page has room for some labels only."""
    items = []
    for label, found in list(words.labels.items())[:MATRIX_LABELS]:
        shown = " · ".join(f"{one_line(w.word, characters=30)} ({w.count})" for w in found)
        name = one_line(label, characters=LABEL_CHARACTERS)
        items.append(f"<li><b>{html.escape(name)}</b>: {html.escape(shown or 'none')}</li>")
    note = (
        f"The words with the largest total contribution to the answers, in {words.texts:,} texts, and how "
        "often they occur. A contribution is the log odds with the word minus without it."
    )
    title = "<h2>Words that push towards each label</h2>"
    return [title, f"<p>{note}</p>", "<ul>", *items, "</ul>"]


def _mistakes(report: Report) -> str:
    if not report.mistakes:
        return "<p>None.</p>"
    items = "\n".join(
        f"<li>{html.escape(mistake.text)}<br><small>{html.escape(mistake.label)} → "
        f"{html.escape(mistake.predicted)}, {mistake.probability:.1%}, "
        f"text {mistake.number:,}</small></li>"
        for mistake in report.mistakes
    )
    return f"<p>The wrong answers with the highest probabilities.</p>\n<ol>\n{items}\n</ol>"


_STYLE = """
body { max-width: 60rem; }
h1 { margin-bottom: .5rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; }
td { text-align: right; padding: .15em .6em; font-variant-numeric: tabular-nums; }
tr + tr th[scope=row], tr + tr td { border-top: 1px solid rgb(128 128 128 / .25); }
th[scope=col] + th[scope=col] { text-align: right; padding: .15em .6em; }
.matrix th[scope=col] { text-align: right; padding: .15em .6em; }
.matrix .right { background: rgb(var(--ink) / calc(.55 * var(--share))); }
.matrix .wrong { background: rgb(200 60 30 / calc(.75 * var(--share))); }
li { margin-bottom: .6rem; overflow-wrap: anywhere; }"""
