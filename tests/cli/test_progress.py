"""Progress of predicting: a bar in a terminal, nothing elsewhere."""

import io

from rich.console import Console

from fathomer.cli.progress import show_answers
from fathomer.data.reading import Row


def test_answers_show_a_bar_in_a_terminal_and_nothing_elsewhere():
    chunks = [[Row(line, "text") for line in range(i, i + 500)] for i in (2, 502)]
    terminal, pipe = io.StringIO(), io.StringIO()
    console = Console(file=terminal, width=200, force_terminal=True)
    assert list(show_answers(iter(chunks), console, lines=2000)) == chunks
    assert "1,000 texts" in terminal.getvalue()
    assert "━" in terminal.getvalue()
    assert list(show_answers(iter(chunks), Console(file=pipe), lines=None)) == chunks
    assert pipe.getvalue() == ""
