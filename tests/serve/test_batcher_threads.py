"""How long batches wait for more requests, and how several copies of the model share them."""

import asyncio
import time

import pytest

from fathomer.serve.batcher import Batcher
from fathomer.serve.limits import Limits
from tests.serve.fake_predictor import EchoPredictor, Started, run, words


async def fastest(batcher, requests):
    """Return the least time in which requests are answered; other programs may delay some tries."""
    times = []
    for _ in range(5):
        started = time.perf_counter()
        sent = [batcher.submit(["x"], each, max_depth=None).answer for each in requests]
        await asyncio.gather(*sent)
        times.append(time.perf_counter() - started)
    return min(times)


def test_a_single_request_waits_only_for_the_pause():
    async def scenario():
        async with Started(batch_seconds=1, pause_seconds=0.01) as (batcher, _):
            assert await fastest(batcher, [words(1)]) < 0.7

    run(scenario)


def test_a_batch_waits_while_requests_keep_coming():
    async def scenario():
        async with Started(batch_seconds=1, pause_seconds=0.5) as (batcher, echo):
            pending = []
            for n in range(4):
                pending.append(batcher.submit([str(n)], words(1), max_depth=None))
                await asyncio.sleep(0.05)
            await asyncio.gather(*(p.answer for p in pending))
            assert [len(texts) for _, texts in echo.batches] == [4]

    run(scenario)


def test_a_batch_does_not_wait_longer_than_its_time():
    async def scenario():
        async with Started(batch_seconds=0.2, pause_seconds=0.1) as (batcher, _):
            first = batcher.submit(["first"], words(1), max_depth=None)
            started = time.perf_counter()
            while not first.answer.done():
                batcher.submit(["more"], words(1), max_depth=None)
                await asyncio.sleep(0.01)
                assert time.perf_counter() - started < 5

    run(scenario)


def test_a_full_batch_does_not_wait():
    async def scenario():
        async with Started(batch_seconds=1, pause_seconds=1, batch_words=4) as (batcher, _):
            assert await fastest(batcher, [words(2), words(2)]) < 0.7

    run(scenario)


def test_idle_copies_share_the_queue_and_answers_stay_in_order():
    """The first half is held back, so that the second is answered before it."""

    async def scenario():
        slow, fast = EchoPredictor(), EchoPredictor()
        limits = Limits(batch_seconds=0.02, pause_seconds=0.02)
        batcher = Batcher([slow, fast], limits)
        batcher.start()
        try:
            slow.go.clear()
            fast.go.clear()
            pending = batcher.submit(["1", "2", "3", "4"], words(1, 1, 1, 1), max_depth=None)
            for echo in (slow, fast):
                assert await asyncio.to_thread(echo.begun.wait, 10)
            fast.go.set()
            while not fast.batches:
                await asyncio.sleep(0.01)
            slow.go.set()
            assert await pending.answer == ["1@None", "2@None", "3@None", "4@None"]
            halves = [texts for _, texts in slow.batches + fast.batches]
            assert sorted(halves) == [["1", "2"], ["3", "4"]]
        finally:
            await asyncio.to_thread(batcher.close)
        assert not batcher.ready

    run(scenario)


def test_a_request_fails_if_one_of_its_parts_fails():
    async def scenario():
        batcher = Batcher(
            [EchoPredictor(), EchoPredictor()], Limits(batch_seconds=0.02, pause_seconds=0.02)
        )
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
