"""The loop around an engine: what it is told, and in which order."""

import asyncio
from collections.abc import Iterable

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.intake import TAKEN_WORK_MAX, TAKING
from haptera.core.state.limits import S
from haptera.core.state.side import Side
from haptera.kinds import KINDS
from haptera.model.changes import Stored
from haptera.model.effects import Effect
from haptera.model.entity import node_id
from haptera.model.events import Asked, Event, WallClockSet
from haptera.model.parts import Context
from haptera.runtime import clock
from haptera.runtime.driver import CLOCKED_NS, Driver

BURST = 10_000


class Listening(Engine):
    """An engine that remembers what it was told."""

    def __init__(self) -> None:
        side = Side(Context.PARENT, None, 1, "boot", 5 * S)
        super().__init__(side, Catalog(KINDS, []), Stored(1, 0, [], [], {}), 0, clock.now_ns())
        self.heard: list[Event] = []
        self.counts: list[int] = []

    def handle(self, batch: Iterable[Event], now: int) -> list[Effect]:
        events = list(batch)
        self.heard += events
        self.counts.append(len(events))
        return super().handle(events, now)


def test_an_engine_is_told_the_wall_clock_first_and_not_again_while_nobody_sets_it() -> None:
    async def run() -> list[Event]:
        engine = Listening()
        driver = Driver(engine)
        driver.deliver([Asked(node_id("n1"))])
        running = asyncio.ensure_future(driver.run(lambda _: None))
        async with asyncio.timeout(60):
            while Asked(node_id("n2")) not in engine.heard:
                driver.deliver([Asked(node_id("n2"))])
                await asyncio.sleep(0)
        running.cancel()
        return engine.heard

    first, *rest = asyncio.run(run())
    assert isinstance(first, WallClockSet)
    assert abs(first.wall_offset_ns - clock.wall_offset_ns()) < CLOCKED_NS
    assert Asked(node_id("n1")) in rest
    assert not any(isinstance(one, WallClockSet) for one in rest)


def test_of_a_burst_each_turn_takes_in_a_few_and_all_are_taken_in_their_order() -> None:
    burst = [Asked(node_id(f"n{number}")) for number in range(BURST)]

    async def run() -> Listening:
        engine, done = Listening(), asyncio.Event()
        driver = Driver(engine)
        driver.deliver(burst)
        running = asyncio.ensure_future(
            driver.run(lambda _: done.set() if engine.heard[-1:] == burst[-1:] else None)
        )
        async with asyncio.timeout(60):
            await done.wait()
        running.cancel()
        return engine

    engine = asyncio.run(run())
    assert [one for one in engine.heard if isinstance(one, Asked)] == burst
    assert max(engine.counts) <= TAKEN_WORK_MAX // TAKING
