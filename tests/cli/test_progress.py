"""Progress bars in a terminal, and plain lines elsewhere."""

import io

from rich.console import Console

from fathomer.cli.progress import show_answers, show_training
from fathomer.data.reading import Row
from fathomer.train.checkpoint import TrainingState
from fathomer.train.loop import RolledBack, train
from tests.tiny import TINY, tiny_prepared


def train_shown_on(console):
    prepared = tiny_prepared()
    events = train(TrainingState.start(prepared.network), prepared)
    return list(show_training(events, console, epochs=TINY.train.epochs))


def test_outside_a_terminal_there_is_a_plain_line_per_epoch():
    file = io.StringIO()
    events = train_shown_on(Console(file=file, width=200))
    lines = file.getvalue().splitlines()
    assert len(events) > len(lines) == TINY.train.epochs
    assert lines[0].startswith("epoch 1/4  loss ")
    assert "\x1b" not in file.getvalue()


def test_in_a_terminal_there_is_a_bar_with_the_running_scores():
    file = io.StringIO()
    train_shown_on(Console(file=file, width=200, force_terminal=True))
    shown = file.getvalue()
    for part in ("epoch", "loss", "accuracy", "depth", "words/s", "━"):
        assert part in shown


def test_a_rollback_is_printed():
    file = io.StringIO()
    list(show_training([RolledBack(2, 7, 0.0005)], Console(file=file, width=200), epochs=3))
    assert file.getvalue() == (
        "epoch 2: the loss was not finite at step 7; continuing from the last good state "
        "with a learning rate of 0.0005\n"
    )


def test_answers_show_a_bar_in_a_terminal_and_nothing_elsewhere():
    chunks = [[Row(line, "text") for line in range(i, i + 500)] for i in (2, 502)]
    terminal, pipe = io.StringIO(), io.StringIO()
    console = Console(file=terminal, width=200, force_terminal=True)
    assert list(show_answers(iter(chunks), console, lines=2000)) == chunks
    assert "1,000 texts" in terminal.getvalue()
    assert "━" in terminal.getvalue()
    assert list(show_answers(iter(chunks), Console(file=pipe), lines=None)) == chunks
    assert pipe.getvalue() == ""
