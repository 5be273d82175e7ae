"""The depth of each word, drawn for a terminal or written as a self-contained HTML page."""

import html
from collections.abc import Iterator

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from fathomer.html_page import html_page
from fathomer.prediction import Prediction, Word

_BARS = "▁▂▃▄▅▆▇█"
_SHALLOW, _DEEP = (222, 235, 247), (8, 48, 107)


def draw_prediction(prediction: Prediction, *, max_depth: int, width: int) -> Text:
    """Draw the answer, with a bar and a number for the depth under each word."""
    drawing = Text(no_wrap=True, overflow="ignore")
    drawing.append(_title(prediction), style="bold")
    drawing.append(f"  {_summary(prediction, max_depth=max_depth)}\n")
    for row in _rows(prediction.words, width):
        words, depths = Text(), Text()
        for word in row:
            columns = _columns(word) + 1
            words.append(_printable(word), style=_shade(word.depth, max_depth))
            words.append(" " * (columns - cell_len(_printable(word))))
            bar = _BARS[round((len(_BARS) - 1) * _share(word.depth, max_depth))]
            depths.append(f"{bar}{word.depth}".ljust(columns))
        for line in (words, depths):
            line.rstrip()
            drawing.append("\n").append_text(line)
        drawing.append("\n")
    if prediction.truncated:
        drawing.append("\nThe text was cut here: it has more words than the model reads.\n")
    return drawing


def _title(prediction: Prediction) -> str:
    """Return the predicted label, or all of them in a multi-label model."""
    if prediction.labels is None:
        return prediction.best
    return ", ".join(prediction.labels) or "no label"


def _summary(prediction: Prediction, *, max_depth: int) -> str:
    """Return the probability and the mean depth in one line."""
    line = f"{prediction.probabilities[prediction.best]:.1%}"
    if prediction.mean_depth is None:
        return f"{line}, no words"
    return f"{line}, mean depth {prediction.mean_depth:.1f} of {max_depth}"


def prediction_page(prediction: Prediction, *, max_depth: int) -> str:
    """Return a self-contained HTML page; deeper words are darker and stand higher."""
    words = "\n".join(
        f'<span class="word" style="--share:{_share(word.depth, max_depth):.3f}" '
        f'title="depth {word.depth}">{html.escape(word.text)}<sub>{word.depth}</sub></span>'
        for word in prediction.words
    )
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
    )
    return html_page(f"{label}: how deep each word was read", body, style=_STYLE)


def _share(depth: int, max_depth: int) -> float:
    """Scale a depth to 0 (shallowest) .. 1 (deepest)."""
    return (depth - 1) / max(1, max_depth - 1)


def _printable(word: Word) -> str:
    """Return the word without control characters, cut to 40 characters."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in word.text[:40])
    return text if len(word.text) <= 40 else text[:39] + "…"


def _columns(word: Word) -> int:
    return max(cell_len(_printable(word)), len(f"▁{word.depth}"))


def _rows(words: tuple[Word, ...], width: int) -> Iterator[list[Word]]:
    """Wrap the words into lines of at most ``width`` columns."""
    row: list[Word] = []
    used = 0
    for word in words:
        columns = _columns(word) + 1
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
        border-radius: .3em; background: rgb(var(--ink) / calc(.08 + .47 * var(--share))); }
sub { font-size: .6em; opacity: .75; margin-left: .15em; }
meter { width: 16rem; max-width: 50vw; }"""

_BODY = """<h1>{label}</h1>
<p>{summary}</p>
<p class="text">
{words}
</p>
{cut}
<table>
{bars}
</table>"""
