"""In which order large answers are sent: events in, who has a turn out; the clock is a number."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from haptera.api.requests.order import ServingLimits, ServingOrder

SOON_S = 0.01


def test_turns_are_given_in_the_order_of_asking() -> None:
    async def run() -> list[str]:
        order = ServingOrder(lambda: ServingLimits(2))
        served: list[str] = []
        two, go_on = asyncio.Event(), asyncio.Event()

        async def ask(caller: str) -> None:
            async with order.turn(caller) as before:
                assert before is None
                served.append(caller)
                if len(served) == 2:
                    two.set()
                await go_on.wait()

        async with asyncio.TaskGroup() as asking:
            for caller in ("a", "b", "c", "d"):
                asking.create_task(ask(caller))
            await two.wait()
            await asyncio.sleep(SOON_S)
            assert served == ["a", "b"]
            go_on.set()
        return served

    assert asyncio.run(run()) == ["a", "b", "c", "d"]


def test_who_asks_again_keeps_its_place_and_who_is_away_holds_nobody_up() -> None:
    async def run() -> list[tuple[str, int | None]]:
        order = ServingOrder(lambda: ServingLimits(1), wait_s=SOON_S)
        told: list[tuple[str, int | None]] = []

        async def ask(caller: str) -> None:
            async with order.turn(caller) as before:
                told.append((caller, before))

        async with AsyncExitStack() as first:
            assert await first.enter_async_context(order.turn("first")) is None
            for caller in ("a", "b", "c"):
                await ask(caller)
            await ask("a")
        await ask("b")  # a is away, and not before it
        await ask("a")
        await ask("c")
        return told

    assert asyncio.run(run()) == [
        *(("a", 0), ("b", 1), ("c", 2), ("a", 0)),
        *(("b", None), ("a", None), ("c", None)),
    ]


def test_who_asks_for_several_gets_each_and_not_before_others() -> None:
    async def run() -> list[str]:
        order = ServingOrder(lambda: ServingLimits(1))
        served: list[str] = []

        async def ask(caller: str, what: str) -> None:
            async with order.turn(caller) as before:
                assert before is None
                served.append(what)

        async with asyncio.TaskGroup() as asking, order.turn("first"):
            for caller, what in (("a", "a1"), ("a", "a2"), ("b", "b1"), ("a", "a3")):
                asking.create_task(ask(caller, what))
            await asyncio.sleep(SOON_S)
            assert served == []
        return served

    assert asyncio.run(run()) == ["a1", "b1", "a2", "a3"]


def test_where_several_of_one_caller_wait_each_is_told_how_many_are_before_it() -> None:
    async def run() -> list[int | None]:
        order = ServingOrder(lambda: ServingLimits(1), wait_s=SOON_S)
        told: list[int | None] = []

        async def ask(caller: str) -> None:
            async with order.turn(caller) as before:
                told.append(before)

        async with order.turn("first"), asyncio.TaskGroup() as asking:
            for caller in ("a", "b", "b"):
                asking.create_task(ask(caller))
        await ask("b")
        return told

    assert asyncio.run(run()) == [0, 1, 1, None]


@pytest.mark.parametrize(("rate", "delays"), [(None, [0.0, 0.0, 0.0]), (100.0, [0.0, 0.5, 0.0])])
def test_all_together_are_sent_at_the_rate(rate: float | None, delays: list[float]) -> None:
    order = ServingOrder(lambda: ServingLimits(1, rate))

    assert [order.delay_s(50, 1.0), order.delay_s(50, 1.0), order.delay_s(50, 9.0)] == delays
