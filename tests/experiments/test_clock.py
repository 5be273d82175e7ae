"""Timing of a run: what counts, and what does not."""

from itertools import count

from experiments import clock as clock_module
from experiments.clock import StoredClock, classify_timed
from fathomer.data.labelled import encode_examples
from fathomer.predictor import Predictor
from fathomer.train.checkpoint import EpochDone
from fathomer.train.loop import StepDone
from tests.tiny import tiny_artifact, tiny_examples


def test_an_epoch_in_which_the_machine_was_suspended_does_not_count(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(clock_module.time, "perf_counter", lambda: now[0])
    step = StepDone(1, 1, steps=1, texts=9, words=100, loss=1.0, correct=5, depth_sum=500)
    done = EpochDone(1, 1.0, 0.5, 5.0, words=100, learning_rate=0.1, held_out=None, best=True)

    def events():
        for seconds in (1.0, 3600.0, 1.0):
            now[0] += seconds
            yield step
            now[0] += 0.5  # scoring the held-out texts
            yield done

    clock = StoredClock(tmp_path / "clock.json")
    assert len(list(clock.watch(events()))) == 6
    assert clock.words_per_second == 100
    continued = StoredClock(tmp_path / "clock.json")
    assert (continued.speeds, continued.wall) == (clock.speeds, clock.wall)


def test_time_in_which_other_programs_held_the_core_does_not_count(monkeypatch):
    predictor = Predictor(tiny_artifact())
    artifact = predictor.artifact
    data = encode_examples(
        tiny_examples(), artifact.tokenizer, artifact.labels, artifact.recipe.text
    )
    clocks = {"perf_counter": count(step=10), "process_time": count()}
    for name, ticks in clocks.items():
        monkeypatch.setattr(clock_module.time, name, lambda ticks=ticks: float(next(ticks)))
    _, speed = classify_timed(predictor, data)
    assert speed == len(data.texts.ids)
