"""The batcher with fake predictors: order, budgets, dropped requests and errors."""

import asyncio

import pytest

from fathomer.serve.batcher import QueueFullError
from tests.serve.fake_predictor import Started, occupy, run, words


def test_requests_share_a_batch_and_get_their_own_answers():
    async def scenario():
        async with Started() as (batcher, echo):
            requests = [[f"{n}a", f"{n}b"] for n in range(20)]
            pending = [batcher.submit(t, words(3, 2), max_depth=None) for t in requests]
            answers = await asyncio.gather(*(p.answer for p in pending))
            assert answers == [[f"{n}a@None", f"{n}b@None"] for n in range(20)]
            assert len(echo.batches) == 1

    run(scenario)


def test_no_batch_exceeds_the_budget_and_a_long_request_is_split():
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


def test_different_depth_limits_are_predicted_separately():
    async def scenario():
        async with Started() as (batcher, echo):
            pending = [batcher.submit(["x"], words(1), max_depth=n % 2 + 1) for n in range(6)]
            answers = await asyncio.gather(*(p.answer for p in pending))
            assert answers == [["x@1"], ["x@2"]] * 3
            assert sorted(echo.batches) == [(1, ["x"] * 3), (2, ["x"] * 3)]

    run(scenario)


def test_contributions_cost_the_words_that_are_read_for_them():
    async def scenario():
        async with Started(batch_words=10, queue_words=20) as (batcher, echo):
            busy = await occupy(batcher, echo)
            plain = batcher.submit(["a"], words(3), max_depth=None)
            more = batcher.submit(["b", "c"], words(3, 0), max_depth=None, contributions=True)
            assert more.costs == [9, 1]
            assert batcher.queued_words == 13
            long = batcher.submit(["d"], words(300), max_depth=None, contributions=True)
            assert long.costs == [60_000]
            with pytest.raises(QueueFullError, match="queue_words"):
                batcher.submit(["e"], words(1), max_depth=None)
            echo.go.set()
            await asyncio.gather(*(p.answer for p in (busy, plain, more, long)))
            assert [texts for _, texts in echo.batches] == [["busy"], ["a"], ["b", "c"], ["d"]]

    run(scenario)


def test_requests_with_and_without_contributions_are_predicted_separately():
    async def scenario():
        async with Started() as (batcher, echo):
            pending = [
                batcher.submit([str(n)], words(1), max_depth=None, contributions=n % 2 == 0)
                for n in range(4)
            ]
            await asyncio.gather(*(p.answer for p in pending))
            assert sorted(texts for _, texts in echo.batches) == [["0", "2"], ["1", "3"]]

    run(scenario)


def test_different_depth_budgets_are_predicted_separately():
    async def scenario():
        async with Started() as (batcher, echo):
            pending = [
                batcher.submit([str(n)], words(1), max_depth=None, depth_budget=n % 2 + 1.5)
                for n in range(4)
            ]
            await asyncio.gather(*(p.answer for p in pending))
            assert sorted(texts for _, texts in echo.batches) == [["0", "2"], ["1", "3"]]

    run(scenario)


def test_a_full_queue_rejects_requests_until_it_has_room():
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


def test_a_dropped_request_leaves_the_queue_and_is_never_read():
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


def test_a_request_dropped_while_another_depth_limit_is_predicted_is_not_read():
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


def test_an_empty_text_counts_as_one_word():
    async def scenario():
        async with Started(batch_words=2) as (batcher, echo):
            assert await batcher.submit(["", "", ""], words(0, 0, 0), max_depth=None).answer
            assert [len(texts) for _, texts in echo.batches] == [2, 1]

    run(scenario)


def test_a_cancelled_request_does_not_affect_the_others():
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


def test_a_failed_batch_fails_only_its_own_requests():
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


def test_closing_answers_queued_requests_and_accepts_no_more():
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


def test_the_number_of_queued_requests_is_limited():
    async def scenario():
        async with Started(queue_requests=2) as (batcher, echo):
            busy = await occupy(batcher, echo)
            queued = [batcher.submit([str(n)], words(1), max_depth=None) for n in range(2)]
            with pytest.raises(QueueFullError, match="queue_requests"):
                batcher.submit(["late"], words(1), max_depth=None)
            echo.go.set()
            await asyncio.gather(busy.answer, *(p.answer for p in queued))

    run(scenario)


def test_an_empty_request_is_answered_without_the_model():
    async def scenario():
        async with Started() as (batcher, echo):
            assert await batcher.submit([], [], max_depth=None).answer == []
            assert echo.batches == []

    run(scenario)
