"""Progress of a training: a bar with the time left in a terminal, plain lines elsewhere."""

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.progress import Progress

from fathomer.train.checkpoint import EpochDone, TrainingState
from fathomer.train.loop import RolledBack, StepDone, train
from fathomer.train.progress import TrainingClock, show_training
from tests.tiny import TINY, tiny_prepared

EPOCHS, STEPS, SECONDS = 3, 10, 7.0
"""A training of three epochs in which every step takes seven seconds."""


def train_shown_on(console):
    prepared = tiny_prepared()
    events = train(TrainingState.start(prepared.network), prepared)
    return list(show_training(events, console, epochs=TINY.train.epochs))


def step_done(epoch, step):
    return StepDone(epoch, step, STEPS, texts=4, words=40, loss=0.5, correct=3, depth_sum=80)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless it is moved."""
    found = SimpleNamespace(now=100.0)
    monkeypatch.setattr(
        "fathomer.train.progress.time", SimpleNamespace(perf_counter=lambda: found.now)
    )
    return found


def test_the_time_left_counts_down_to_the_end_of_the_last_epoch(clock):
    timer = TrainingClock(EPOCHS)
    for epoch in range(1, EPOCHS + 1):
        for step in range(1, STEPS + 1):
            clock.now += SECONDS
            steps_left = EPOCHS * STEPS - (epoch - 1) * STEPS - step
            assert timer.seconds_left(step_done(epoch, step)) == pytest.approx(SECONDS * steps_left)


def test_the_time_left_of_a_resumed_training_counts_only_its_own_epochs(clock):
    timer = TrainingClock(EPOCHS)
    clock.now += SECONDS
    left = timer.seconds_left(step_done(3, 1))
    assert left == pytest.approx(SECONDS * (STEPS - 1))


def test_the_bar_shows_the_time_left_in_every_epoch(clock, monkeypatch):
    shown = []
    monkeypatch.setattr(Progress, "update", lambda *_, status, **__: shown.append(status))

    def events():
        for epoch in range(1, EPOCHS + 1):
            for step in range(1, STEPS + 1):
                clock.now += SECONDS
                yield step_done(epoch, step)
            yield EpochDone(epoch, 0.5, 0.75, 2.0, 400, 0.001, None, best=True)

    list(show_training(events(), Console(file=io.StringIO(), width=80), epochs=EPOCHS))
    scores = "loss 0.500  training 0.750"
    assert shown[0] == f"{scores}  3:23 left"
    assert shown[9::10] == [f"{scores}  {left} left" for left in ("2:20", "1:10", "0:00")]


def test_outside_a_terminal_there_is_a_plain_line_per_epoch_that_fits_80_columns():
    file = io.StringIO()
    events = train_shown_on(Console(file=file, width=200))
    lines = file.getvalue().splitlines()
    assert len(events) > len(lines) == TINY.train.epochs
    number = r"\d\.\d\d\d"
    pattern = (
        rf"epoch 1/4  loss {number}  training {number}  held out {number}  depth \d\.\d\d  \d s"
    )
    assert re.fullmatch(rf"{pattern}  best", lines[0])
    assert max(map(len, lines)) < 80
    assert "\x1b" not in file.getvalue()


def test_in_a_terminal_of_80_columns_there_is_a_bar_with_the_running_scores():
    file = io.StringIO()
    train_shown_on(Console(file=file, width=80, force_terminal=True))
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue())
    for part in ("epoch", "loss", "training", "left", "━"):
        assert part in shown
    assert "…" not in shown
    assert max(map(len, re.split(r"[\r\n]", shown))) <= 80


def test_a_rollback_is_printed():
    file = io.StringIO()
    list(show_training([RolledBack(2, 7, 0.0005)], Console(file=file, width=200), epochs=3))
    assert file.getvalue() == (
        "epoch 2: the loss was not finite at step 7; continuing from the last good state "
        "with a learning rate of 0.0005\n"
    )
