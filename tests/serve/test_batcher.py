"""The batcher with predictors that are no models: order, budget, company, ends."""

import asyncio
import threading
import time
from types import SimpleNamespace

import pytest

from fathomer.serve.batcher import Batcher, QueueFullError
from fathomer.serve.limits import Limits


def words(*counts):
    return [SimpleNamespace(ids=[1] * count) for count in counts]


class Echo:
    """Answer each text with itself, and remember the batches; wait for ``go`` if told to."""

    def __init__(self):
        self.batches = []
        self.go = threading.Event()
        self.go.set()
        self.begun = threading.Event()

    def predict_words(self, texts, words, *, max_depth=None):
        self.begun.set()
        assert self.go.wait(10)
        self.batches.append((max_depth, list(texts)))
        if "fail" in texts:
            raise ValueError("no")
        return [f"{text}@{max_depth}" for text in texts]


class Started:
    """A batcher that is started, and closed at the end."""

    def __init__(self, **limits):
        self.echo = Echo()
        self.batcher = Batcher(
            [self.echo], Limits(**{"batch_seconds": 0.02, "pause_seconds": 0.02, **limits})
        )

    async def __aenter__(self):
        self.batcher.start()
        return self.batcher, self.echo

    async def __aexit__(self, *_):
        self.echo.go.set()
        await asyncio.to_thread(self.batcher.close)


async def occupy(batcher, echo):
    """Keep the model busy with a request, so that others queue."""
    echo.go.clear()
    echo.begun.clear()
    pending = batcher.submit(["busy"], words(1), max_depth=None)
    assert await asyncio.to_thread(echo.begun.wait, 10)
    return pending


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario(), 20))


def test_requests_meet_in_one_batch_and_get_their_own_answers():
    async def scenario():
        async with Started() as (batcher, echo):
            asked = [[f"{n}a", f"{n}b"] for n in range(20)]
            pending = [batcher.submit(t, words(3, 2), max_depth=None) for t in asked]
            answers = await asyncio.gather(*(p.answer for p in pending))
            assert answers == [[f"{n}a@None", f"{n}b@None"] for n in range(20)]
            assert len(echo.batches) == 1

    run(scenario)


def test_no_batch_exceeds_the_budget_and_a_long_request_is_read_in_parts():
    async def scenario():
        async with Started(batch_words=10) as (batcher, echo):
            busy = await occupy(batcher, echo)
            long = batcher.submit([f"t{n}" for n in range(7)], words(*[4] * 7), max_depth=None)
            alone = batcher.submit(["huge"], words(25), max_depth=None)
            echo.go.set()
            assert await long.answer == [f"t{n}@None" for n in range(7)]
            assert await alone.answer == ["huge@None"]
            assert await busy.answer == ["busy@None"]
            assert [len(texts) for _, texts in echo.batches] == [1, 2, 2, 2, 1, 1]
            assert batcher.queued_words == 0

    run(scenario)


def test_different_caps_on_the_depth_are_read_apart():
    async def scenario():
        async with Started() as (batcher, echo):
            pending = [batcher.submit(["x"], words(1), max_depth=n % 2 + 1) for n in range(6)]
            answers = await asyncio.gather(*(p.answer for p in pending))
            assert answers == [["x@1"], ["x@2"]] * 3
            assert sorted(echo.batches) == [(1, ["x"] * 3), (2, ["x"] * 3)]

    run(scenario)


def test_a_full_queue_refuses_at_once_and_has_room_again_later():
    async def scenario():
        async with Started(queue_words=5) as (batcher, echo):
            await occupy(batcher, echo)
            waiting = batcher.submit(["a"], words(5), max_depth=None)
            with pytest.raises(QueueFullError, match="queue_words"):
                batcher.check_room()
            with pytest.raises(QueueFullError, match="queue_words"):
                batcher.submit(["b"], words(1), max_depth=None)
            echo.go.set()
            await waiting.answer
            assert await batcher.submit(["c"], words(1), max_depth=None).answer == ["c@None"]

    run(scenario)


def test_a_dropped_request_frees_its_place_and_is_never_read():
    async def scenario():
        async with Started(queue_words=5) as (batcher, echo):
            busy = await occupy(batcher, echo)
            unwanted = batcher.submit(["unwanted"], words(5), max_depth=None)
            batcher.drop(unwanted)
            batcher.drop(unwanted)
            assert (batcher.queued_words, batcher.queued_requests) == (0, 0)
            wanted = batcher.submit(["wanted"], words(5), max_depth=None)
            echo.go.set()
            await asyncio.gather(busy.answer, wanted.answer)
            assert "unwanted" not in str(echo.batches)
            assert not unwanted.answer.done()

    run(scenario)


def test_the_rest_of_a_dropped_request_is_not_read():
    async def scenario():
        async with Started(batch_words=2) as (batcher, echo):
            echo.go.clear()
            long = batcher.submit(["1", "2", "3", "4"], words(1, 1, 1, 1), max_depth=None)
            assert await asyncio.to_thread(echo.begun.wait, 10)
            batcher.drop(long)
            echo.go.set()
            await batcher.submit(["next"], words(1), max_depth=None).answer
            assert echo.batches == [(None, ["1", "2"]), (None, ["next"])]
            assert batcher.queued_words == 0

    run(scenario)


def test_what_is_dropped_while_other_depths_are_read_is_not_read():
    async def scenario():
        async with Started() as (batcher, echo):
            echo.go.clear()
            first = batcher.submit(["first"], words(1), max_depth=1)
            unwanted = batcher.submit(["unwanted"], words(1), max_depth=2)
            assert await asyncio.to_thread(echo.begun.wait, 10)
            batcher.drop(unwanted)
            echo.go.set()
            await first.answer
            await batcher.submit(["next"], words(1), max_depth=3).answer
            assert echo.batches == [(1, ["first"]), (3, ["next"])]

    run(scenario)


def test_an_empty_text_counts_as_a_word():
    async def scenario():
        async with Started(batch_words=2) as (batcher, echo):
            assert await batcher.submit(["", "", ""], words(0, 0, 0), max_depth=None).answer
            assert [len(texts) for _, texts in echo.batches] == [2, 1]

    run(scenario)


def test_who_no_longer_waits_takes_nothing_from_the_others():
    async def scenario():
        async with Started() as (batcher, echo):
            echo.go.clear()
            gone = batcher.submit(["gone"], words(1), max_depth=None)
            other = batcher.submit(["other"], words(1), max_depth=None)
            assert await asyncio.to_thread(echo.begun.wait, 10)
            gone.answer.cancel()
            echo.go.set()
            assert await asyncio.wait_for(other.answer, 5) == ["other@None"]

    run(scenario)


def test_a_batch_that_fails_is_told_to_its_requests_only():
    async def scenario():
        async with Started(batch_words=1) as (batcher, echo):
            failing = batcher.submit(["fail", "rest"], words(1, 1), max_depth=None)
            good = batcher.submit(["good"], words(1), max_depth=None)
            with pytest.raises(ValueError, match="no"):
                await failing.answer
            assert await good.answer == ["good@None"]
            assert [texts for _, texts in echo.batches] == [["fail"], ["good"]]
            assert batcher.ready
            assert batcher.queued_words == 0

    run(scenario)


def test_closing_answers_what_is_queued_and_takes_no_more():
    async def scenario():
        async with Started(batch_words=1) as (batcher, echo):
            await occupy(batcher, echo)
            queued = [batcher.submit([str(n)], words(1), max_depth=None) for n in range(5)]
            closing = asyncio.create_task(asyncio.to_thread(batcher.close))
            while batcher.ready:
                await asyncio.sleep(0.01)
            with pytest.raises(QueueFullError):
                batcher.submit(["late"], words(1), max_depth=None)
            echo.go.set()
            await closing
            assert await asyncio.gather(*(p.answer for p in queued)) == [
                [f"{n}@None"] for n in range(5)
            ]

    run(scenario)


def test_a_request_that_comes_alone_waits_for_the_pause_only():
    async def scenario():
        async with Started(batch_seconds=1, pause_seconds=0.01) as (batcher, _):
            begun = time.perf_counter()
            await batcher.submit(["alone"], words(1), max_depth=None).answer
            assert time.perf_counter() - begun < 0.7

    run(scenario)


def test_company_is_waited_for_while_it_keeps_coming():
    async def scenario():
        async with Started(batch_seconds=1, pause_seconds=0.5) as (batcher, echo):
            pending = []
            for n in range(4):
                pending.append(batcher.submit([str(n)], words(1), max_depth=None))
                await asyncio.sleep(0.05)
            await asyncio.gather(*(p.answer for p in pending))
            assert [len(texts) for _, texts in echo.batches] == [4]

    run(scenario)


def test_company_that_never_ends_is_not_waited_for():
    async def scenario():
        async with Started(batch_seconds=0.2, pause_seconds=0.1) as (batcher, _):
            first = batcher.submit(["first"], words(1), max_depth=None)
            begun = time.perf_counter()
            while not first.answer.done():
                batcher.submit(["more"], words(1), max_depth=None)
                await asyncio.sleep(0.01)
                assert time.perf_counter() - begun < 5

    run(scenario)


def test_a_full_batch_waits_for_nobody():
    async def scenario():
        async with Started(batch_seconds=1, pause_seconds=1, batch_words=4) as (batcher, _):
            begun = time.perf_counter()
            both = [batcher.submit(["x"], words(2), max_depth=None).answer for _ in range(2)]
            await asyncio.gather(*both)
            assert time.perf_counter() - begun < 0.7

    run(scenario)


def test_no_more_requests_wait_than_agreed():
    async def scenario():
        async with Started(queue_requests=2) as (batcher, echo):
            busy = await occupy(batcher, echo)
            queued = [batcher.submit([str(n)], words(1), max_depth=None) for n in range(2)]
            with pytest.raises(QueueFullError, match="queue_requests"):
                batcher.submit(["late"], words(1), max_depth=None)
            echo.go.set()
            await asyncio.gather(busy.answer, *(p.answer for p in queued))

    run(scenario)


def test_no_texts_are_answered_without_the_model():
    async def scenario():
        async with Started() as (batcher, echo):
            assert await batcher.submit([], [], max_depth=None).answer == []
            assert echo.batches == []

    run(scenario)


def test_copies_at_rest_share_what_waits_and_every_answer_is_in_its_place():
    """The first part is held back: the second one is answered before it."""

    async def scenario():
        slow, quick = Echo(), Echo()
        limits = Limits(batch_seconds=0.02, pause_seconds=0.02)
        batcher = Batcher([slow, quick], limits)
        batcher.start()
        try:
            slow.go.clear()
            quick.go.clear()
            pending = batcher.submit(["1", "2", "3", "4"], words(1, 1, 1, 1), max_depth=None)
            for echo in (slow, quick):
                assert await asyncio.to_thread(echo.begun.wait, 10)
            quick.go.set()
            while not quick.batches:
                await asyncio.sleep(0.01)
            slow.go.set()
            assert await pending.answer == ["1@None", "2@None", "3@None", "4@None"]
            halves = [texts for _, texts in slow.batches + quick.batches]
            assert sorted(halves) == [["1", "2"], ["3", "4"]]
        finally:
            await asyncio.to_thread(batcher.close)
        assert not batcher.ready

    run(scenario)


def test_a_request_is_not_answered_when_one_of_its_parts_has_failed():
    async def scenario():
        batcher = Batcher([Echo(), Echo()], Limits(batch_seconds=0.02, pause_seconds=0.02))
        batcher.start()
        try:
            failing = batcher.submit(["fail", "x"], words(1, 1), max_depth=None)
            with pytest.raises(ValueError, match="no"):
                await failing.answer
            good = [batcher.submit([str(n)], words(1), max_depth=None) for n in range(9)]
            answers = await asyncio.gather(*(p.answer for p in good))
            assert answers == [[f"{n}@None"] for n in range(9)]
        finally:
            await asyncio.to_thread(batcher.close)

    run(scenario)
