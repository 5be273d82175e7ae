"""Cases are timed in turns, and their timings summarised."""

import pytest

from benchmarks.machine import describe_machine, peak_memory
from benchmarks.timing import Case, Timings, run_in_turns, summarise, time_inside, timed


def case(name, run, **changes):
    settings = {
        "lengths": "imdb", "batch": 2, "mean_depth": 3, "precision": "float32", "words": 100,
        "batches": 1, **changes,
    }  # fmt: skip
    return Case(name=name, run=run, **settings)


def test_cases_run_in_turns_after_a_warm_up():
    ran = []
    cases = [case(name, lambda name=name: ran.append(name) or 0.1) for name in "abc"]
    reported = []
    timings = run_in_turns(cases, rounds=3, seconds=10, report=reported.append)
    assert "".join(ran) == "abc" * 4
    assert [found.seconds for found in timings] == [[0.1] * 3] * 3
    assert reported[0] == "warm-up 1/3: a float32, imdb, batch 2, depth 3"
    assert reported[-1] == "round 3/3"


def test_a_slow_case_skips_later_rounds_but_runs_twice():
    clock = iter([60.0, 61.0])
    cases = [
        case("slow", lambda: next(clock)),  # twice, so the warm-up must count
        case("less slow", lambda: 2.0),
        case("fast", lambda: 0.7),
    ]
    slowest, slow, fast = run_in_turns(cases, rounds=9, seconds=3, report=lambda _: None)
    assert slowest.seconds == [60.0, 61.0]
    assert slow.seconds == [2.0] * 2
    assert fast.seconds == [0.7] * 5


def test_a_measurement_has_the_median_and_spread_of_one_batch():
    row = summarise(
        case("a", None, batches=4, words=1000),
        Timings(12.34, [0.4, 0.1, 0.2, 0.3, 5.0]),
    )
    assert row.words_per_second == 3333.3
    assert row.milliseconds == 75
    assert row.spread == {"min": 25, "q1": 50, "q3": 100, "max": 1250}
    assert (row.rounds, row.words, row.peak_mb) == (5, 1000, 12.3)


def test_work_is_timed():
    done = []
    assert 0 <= timed(lambda: done.append(1))() < 1
    assert done == [1]


def test_the_peak_memory_of_a_function_is_measured():
    result, found = peak_memory(lambda: len(bytearray(80_000_000)))
    assert result == 80_000_000
    if found is None:
        pytest.skip("this system does not report the peak")
    assert 75 < found < 120
    assert peak_memory(lambda: len(bytearray(1000)))[1] < 20
    assert 75 < peak_memory(lambda: len(bytearray(80_000_000)))[1] < 120  # a former peak is reset


def test_the_machine_is_described():
    machine = describe_machine()
    assert set(machine) == {
        "processor", "cores", "threads", "instruction_set", "system", "python", "torch", "fathomer",
    }  # fmt: skip
    assert machine["threads"] >= 1


def test_the_calls_of_a_method_are_timed_and_the_method_is_restored():
    class Clock:
        def tick(self, times, *, fail=False):
            if fail:
                raise ValueError
            return times + 1

    tick = Clock.tick
    with time_inside(Clock, "tick") as seconds:
        assert Clock().tick(1) == 2
        with pytest.raises(ValueError, match=r"^$"):
            Clock().tick(1, fail=True)
    assert len(seconds) == 2
    assert min(seconds) >= 0
    assert Clock.tick is tick
