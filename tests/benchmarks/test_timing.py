"""Times are taken in turn, and summed up rightly."""

import pytest

from benchmarks.machine import describe_machine, peak_memory
from benchmarks.timing import Contestant, Times, make_row, race, timed


def contestant(name, run, **changes):
    settings = {
        "lengths": "imdb", "batch": 2, "mean_depth": 3, "precision": "float32", "words": 100,
        "batches": 1, **changes,
    }  # fmt: skip
    return Contestant(name=name, run=run, **settings)


def test_contestants_run_in_turn_after_a_warm_up():
    ran = []
    field = [contestant(name, lambda name=name: ran.append(name) or 0.1) for name in "abc"]
    told = []
    times = race(field, rounds=3, seconds=10, tell=told.append)
    assert "".join(ran) == "abc" * 4
    assert [found.seconds for found in times] == [[0.1] * 3] * 3
    assert told[0] == "warm-up 1/3: a float32, imdb, batch 2, depth 3"
    assert told[-1] == "round 3/3"


def test_whoever_is_slow_sits_out_later_rounds_but_has_two_times():
    clock = iter([60.0, 61.0])
    field = [
        contestant("slow", lambda: next(clock)),  # twice, so that the first run must count
        contestant("less slow", lambda: 2.0),
        contestant("fast", lambda: 0.7),
    ]
    slowest, slow, fast = race(field, rounds=9, seconds=3, tell=lambda _: None)
    assert slowest.seconds == [60.0, 61.0]
    assert slow.seconds == [2.0] * 2
    assert fast.seconds == [0.7] * 5


def test_a_row_tells_the_median_and_the_spread_of_one_batch():
    row = make_row(
        contestant("a", None, batches=4, words=1000),
        Times(12.34, [0.4, 0.1, 0.2, 0.3, 5.0]),
    )
    assert row.words_per_second == 3333.3
    assert row.milliseconds == 75
    assert row.spread == {"min": 25, "q1": 50, "q3": 100, "max": 1250}
    assert (row.rounds, row.words, row.peak_mb) == (5, 1000, 12.3)


def test_work_is_timed():
    done = []
    assert 0 <= timed(lambda: done.append(1))() < 1
    assert done == [1]


def test_memory_that_is_taken_and_given_back_is_seen():
    answer, found = peak_memory(lambda: len(bytearray(80_000_000)))
    assert answer == 80_000_000
    if found is None:
        pytest.skip("this system does not tell the peak")
    assert 75 < found < 120
    assert peak_memory(lambda: len(bytearray(1000)))[1] < 20
    assert 75 < peak_memory(lambda: len(bytearray(80_000_000)))[1] < 120  # an old peak is forgotten


def test_the_machine_is_described():
    machine = describe_machine()
    assert set(machine) == {
        "processor", "cores", "threads", "instruction_set", "system", "python", "torch", "fathomer",
    }  # fmt: skip
    assert machine["threads"] >= 1
