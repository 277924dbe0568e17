"""Numbers over real sockets: past the engine, and of nobody more than their share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from haptera.model.samples import Measurement
from haptera.runtime.network.peer_link import SAMPLES_AT_ONCE_MAX, SAMPLES_PER_S
from haptera.wire.sync import beside
from tests.lab.rig import until
from tests.runtime.test_udp import CHANGED, CODEC, HELLO, End, meet, staged

pytestmark = pytest.mark.net

INLET = Measurement("node", "n01", 40, {"temp.inlet": 21.5})
Told = list[tuple[str, Measurement]]


@asynccontextmanager
async def measuring() -> AsyncIterator[tuple[End, End, Told]]:
    """A parent that keeps what its child measures, once both have heard each other."""
    told: Told = []

    def sampled(peer: str, measured: list[Measurement]) -> None:
        told.extend((peer, one) for one in measured)

    async with staged() as stage:
        parent, child = stage.pair()
        moved = parent.moved.append
        parent.udp.start(CODEC, parent.events.extend, lambda *what: moved(what), sampled=sampled)
        await meet(parent, child)
        yield parent, child, told


async def test_what_a_node_measures_is_no_event_of_the_engine() -> None:
    async with measuring() as (parent, child, told):
        before = list(parent.events)

        child.udp.tell_measured("parent", INLET)
        await until(lambda: told == [("n01", INLET)])

        assert parent.events == before


async def test_hellos_beside_it_are_as_cheap_as_before() -> None:
    """A hello that says the same again is not read again, whatever was measured meanwhile."""
    async with measuring() as (parent, child, told):
        child.udp.tell_measured("parent", INLET)
        child.udp.tell("parent", HELLO)
        await until(lambda: parent.alive == [("n01",)])

        assert parent.heard == [HELLO]
        assert told == [("n01", INLET)]


async def test_who_keeps_no_numbers_skips_them() -> None:
    async with staged() as stage:
        parent, child = stage.pair()
        await meet(parent, child)

        child.udp.tell_measured("parent", INLET)
        child.udp.tell("parent", CHANGED)
        await until(lambda: CHANGED in parent.heard)

        assert parent.heard == [HELLO, CHANGED]
        assert parent.udp.counts == {}


async def test_who_was_told_nothing_yet_is_sent_no_numbers() -> None:
    async with staged() as stage:
        _, child = stage.pair()
        child.udp.tell_measured("parent", INLET)
        child.udp.tell_measured("nobody", INLET)

        assert child.udp.counts == {"no session": 2}


async def test_a_flood_of_numbers_is_cut_to_a_share_and_hellos_are_heard() -> None:
    async with measuring() as (parent, child, told):
        begun = asyncio.get_running_loop().time()
        for _ in range(4):
            for _ in range(SAMPLES_AT_ONCE_MAX):
                child.udp.tell_measured("parent", INLET)
            await asyncio.sleep(0)
        child.udp.tell("parent", CHANGED)
        await until(lambda: CHANGED in parent.heard)
        took_s = asyncio.get_running_loop().time() - begun

        assert len(told) <= SAMPLES_AT_ONCE_MAX + SAMPLES_PER_S * took_s + 1
        assert parent.udp.counts["samples beyond their share"] > 0


async def test_a_malformed_section_is_counted_and_changes_nothing() -> None:
    async with measuring() as (parent, child, told):
        link = child.udp._by_name["parent"]
        assert link.told is not None
        child.udp._seal(link, beside(link.told, 16, b"\xc1"))
        await until(lambda: parent.udp.counts == {"section": 1})

        assert told == []
