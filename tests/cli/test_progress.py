import io

from rich.console import Console

from fathomer.data.records import Record
from fathomer.progress import watch, watch_answers
from fathomer.train.checkpoint import TrainingState
from fathomer.train.events import RolledBack
from fathomer.train.loop import train
from tests.tiny import TINY, tiny_prepared


def watched(console):
    prepared = tiny_prepared()
    events = train(TrainingState.start(prepared.network), prepared)
    return list(watch(events, console, epochs=TINY.train.epochs))


def test_elsewhere_than_in_a_terminal_there_is_a_plain_line_per_epoch():
    file = io.StringIO()
    events = watched(Console(file=file, width=200))
    lines = file.getvalue().splitlines()
    assert len(events) > len(lines) == TINY.train.epochs
    assert lines[0].startswith("epoch 1/4  loss ")
    assert "\x1b" not in file.getvalue()


def test_in_a_terminal_there_is_a_bar_with_all_that_matters():
    file = io.StringIO()
    watched(Console(file=file, width=200, force_terminal=True))
    shown = file.getvalue()
    for part in ("epoch", "loss", "accuracy", "depth", "words/s", "━"):
        assert part in shown


def test_a_rollback_is_told():
    file = io.StringIO()
    list(watch([RolledBack(2, 7, 0.0005)], Console(file=file, width=200), epochs=3))
    assert file.getvalue() == (
        "epoch 2: the loss was not finite at step 7; back to the last good state, "
        "and on with a learning rate of 0.0005\n"
    )


def test_answers_have_a_bar_in_a_terminal_and_nothing_elsewhere():
    chunks = [[Record(line, "text", None) for line in range(i, i + 500)] for i in (2, 502)]
    terminal, pipe = io.StringIO(), io.StringIO()
    console = Console(file=terminal, width=200, force_terminal=True)
    assert list(watch_answers(iter(chunks), console, lines=2000)) == chunks
    assert "1,000 texts" in terminal.getvalue()
    assert "━" in terminal.getvalue()
    assert list(watch_answers(iter(chunks), Console(file=pipe), lines=None)) == chunks
    assert pipe.getvalue() == ""
