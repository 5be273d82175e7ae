"""The depth and the contribution of each word, drawn for a terminal or as a self-contained HTML page."""

import html
import textwrap
from collections.abc import Iterator

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from fathomer.evaluate.report import one_line
from fathomer.html_page import html_page
from fathomer.prediction import Prediction, Word

_BARS = "▁▂▃▄▅▆▇█"
_SHALLOW, _DEEP = (222, 235, 247), (8, 48, 107)
_STRONGEST = 10
"""Number of words in the lists of the strongest words."""


def draw_prediction(prediction: Prediction, *, max_depth: int | None, width: int) -> Text:
    """Draw the answer, with the depth and the contribution under each word.

    Depths are left out if ``max_depth`` is None, contributions if the words have none.
    """
    drawing = Text(no_wrap=True, overflow="ignore")
    drawing.append(_title(prediction), style="bold")
    drawing.append(f"  {_summary(prediction, max_depth=max_depth)}\n")
    for row in _rows(prediction.words, max_depth, width):
        for line in _lines(row, max_depth):
            line.rstrip()
            drawing.append("\n").append_text(line)
        drawing.append("\n")
    if prediction.truncated:
        drawing.append("\nThe text was cut here: it has more words than the model reads.\n")
    if legend := _legend(prediction):
        drawing.append("\n" + "\n".join(textwrap.wrap(legend, width)) + "\n")
    return drawing


def _lines(row: list[Word], max_depth: int | None) -> list[Text]:
    """Return the lines that show some words: the words, their depths and their contributions."""
    lines = [Text() for _ in _cells(row[0], max_depth)]
    for word in row:
        columns = _columns(word, max_depth) + 1
        for line, (text, style) in zip(lines, _cells(word, max_depth), strict=True):
            line.append(text, style=style).append(" " * (columns - cell_len(text)))
    return lines


def _cells(word: Word, max_depth: int | None) -> list[tuple[str, Style | str]]:
    """Return the cells in the column of a word, each with its style."""
    cells: list[tuple[str, Style | str]] = [(_printable(word), "")]
    if max_depth is not None:
        bar = _BARS[round((len(_BARS) - 1) * _share(word.depth, max_depth))]
        cells = [(_printable(word), _shade(word.depth, max_depth)), (f"{bar}{word.depth}", "")]
    if word.contribution is not None:
        shown = _signed(word.contribution)
        cells.append((shown, {"+": "green", "-": "red"}.get(shown[0], "")))
    return cells


def _signed(contribution: float) -> str:
    """Return a contribution with its sign, in few characters.

    >>> [_signed(number) for number in (1.26, -0.31, 0.04, -0.02, 12.3)]
    ['+1.3', '-0.3', '0.0', '0.0', '+12']
    """
    shown = f"{contribution:+.1f}" if abs(contribution) < 9.95 else f"{contribution:+.0f}"
    return "0.0" if shown in ("+0.0", "-0.0") else shown


def _legend(prediction: Prediction) -> str:
    """Return what the contributions mean, or nothing if there are none."""
    if not prediction.words or prediction.words[0].contribution is None:
        return ""
    return (
        f"+ supports {one_line(prediction.best, characters=30)}, - opposes it: "
        "log odds with the word minus without it"
    )


def _title(prediction: Prediction) -> str:
    """Return the predicted label, or all of them in a multi-label model."""
    if prediction.labels is None:
        return prediction.best
    return ", ".join(prediction.labels) or "no label"


def _summary(prediction: Prediction, *, max_depth: int | None) -> str:
    """Return the probability and the mean depth in one line."""
    line = f"{prediction.probabilities[prediction.best]:.1%}"
    if prediction.mean_depth is None:
        return f"{line}, no words"
    if max_depth is None:
        return line
    return f"{line}, mean depth {prediction.mean_depth:.1f} of {max_depth}"


def prediction_page(prediction: Prediction, *, max_depth: int | None) -> str:
    """Return a self-contained HTML page; deeper words are darker and stand higher.

    Words that support or oppose the answer are underlined in two colours. Depths are left
    out if ``max_depth`` is None, contributions if the words have none.
    """
    strongest = max((abs(word.contribution or 0) for word in prediction.words), default=0)
    words = "\n".join(_page_word(word, max_depth, strongest) for word in prediction.words)
    bars = "\n".join(
        f"<tr><th scope=row>{html.escape(label)}</th>"
        f'<td><meter value="{probability:.4f}"></meter></td><td>{probability:.1%}</td></tr>'
        for label, probability in prediction.probabilities.items()
    )
    cut = "<p>The text was cut: it has more words than the model reads.</p>"
    label = html.escape(_title(prediction))
    body = _BODY.format(
        label=label,
        summary=html.escape(_summary(prediction, max_depth=max_depth)),
        words=words,
        bars=bars,
        cut=cut if prediction.truncated else "",
        legend=html.escape(_legend(prediction)),
        strongest=_strongest_words(prediction),
    )
    return html_page(f"{label}: word by word", body, style=_STYLE)


def _page_word(word: Word, max_depth: int | None, strongest: float) -> str:
    """Return a word of the page; ``strongest`` is the largest contribution to the answer."""
    kind, styles, notes, below = "word", [], [], ""
    if max_depth is not None:
        styles.append(f"--share:{_share(word.depth, max_depth):.3f}")
        notes.append(f"depth {word.depth}")
        below = f"<sub>{word.depth}</sub>"
    if word.contribution is not None:
        kind += " for" if word.contribution > 0 else " against"
        styles.append(f"--weight:{abs(word.contribution) / (strongest or 1):.3f}")
        notes.append(f"contribution {word.contribution:+.2f}")
    return (
        f'<span class="{kind}" style="{";".join(styles)}" title="{", ".join(notes)}">'
        f"{html.escape(word.text)}{below}</span>"
    )


def _strongest_words(prediction: Prediction) -> str:
    """Return a table of the words that most support or oppose the answer."""
    effects = [(word.contribution or 0.0, word.text) for word in prediction.words]
    by_strength = sorted(effects, key=lambda effect: -abs(effect[0]))
    rows = []
    for title, sign in (("for", 1), ("against", -1)):
        found = [effect for effect in by_strength if sign * effect[0] >= 0.05][:_STRONGEST]
        shown = ", ".join(f"{one_line(word, characters=40)} {_signed(e)}" for e, word in found)
        if found:
            rows.append(f"<tr><th scope=row>{title}</th><td>{html.escape(shown)}</td></tr>")
    return "<table>\n" + "\n".join(rows) + "\n</table>" if rows else ""


def _share(depth: int, max_depth: int) -> float:
    """Scale a depth to 0 (shallowest) .. 1 (deepest)."""
    return (depth - 1) / max(1, max_depth - 1)


def _printable(word: Word) -> str:
    """Return the word without control characters, cut to 40 characters."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in word.text[:40])
    return text if len(word.text) <= 40 else text[:39] + "…"


def _columns(word: Word, max_depth: int | None) -> int:
    return max(cell_len(text) for text, _ in _cells(word, max_depth))


def _rows(words: tuple[Word, ...], max_depth: int | None, width: int) -> Iterator[list[Word]]:
    """Wrap the words into lines of at most ``width`` columns."""
    row: list[Word] = []
    used = 0
    for word in words:
        columns = _columns(word, max_depth) + 1
        if row and used + columns > width:
            yield row
            row, used = [], 0
        row.append(word)
        used += columns
    if row:
        yield row


def _shade(depth: int, max_depth: int) -> Style:
    share = _share(depth, max_depth)
    red, green, blue = (
        round(shallow + share * (deep - shallow))
        for shallow, deep in zip(_SHALLOW, _DEEP, strict=True)
    )
    return Style.parse(f"{'white' if share > 0.4 else 'black'} on rgb({red},{green},{blue})")


_STYLE = """
.text { line-height: 3.2; }
.word { position: relative; top: calc(var(--share) * -0.8em); padding: .15em .3em;
        border-radius: .3em; background: rgb(var(--ink) / calc(.08 + .47 * var(--share))); --share: 0; }
.for { border-bottom: .2em solid rgb(20 140 80 / var(--weight)); }
.against { border-bottom: .2em dotted rgb(215 70 30 / var(--weight)); }
sub { font-size: .6em; opacity: .75; margin-left: .15em; }
meter { width: 16rem; max-width: 50vw; }"""

_BODY = """<h1>{label}</h1>
<p>{summary}</p>
<p class="text">
{words}
</p>
{cut}
<p><small>{legend}</small></p>
{strongest}
<table>
{bars}
</table>"""
