"""Numbers over real sockets: past the engine, and of nobody more than their share."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from haptera.model.samples import Measurement
from haptera.runtime.network.peer_link import SAMPLES_AT_ONCE_MAX, SAMPLES_PER_S
from haptera.wire.sync import beside
from tests.runtime.test_udp import CHANGED, CODEC, HELLO, End, Stage, meet, staged, until

pytestmark = pytest.mark.net

INLET = Measurement("node", "n01", 40, {"temp.inlet": 21.5})
Told = list[tuple[str, Measurement]]


def measuring(play: Callable[[End, End, Told], Awaitable[None]]) -> None:
    """A parent that keeps what its child measures, once both have heard each other."""

    async def begin(stage: Stage) -> None:
        told: Told = []

        def sampled(peer: str, measured: list[Measurement]) -> None:
            told.extend((peer, one) for one in measured)

        parent, child = stage.pair()
        parent.udp.start(
            CODEC,
            parent.events.extend,
            lambda *what: parent.moved.append(what),
            sampled=sampled,
        )
        await meet(parent, child)
        await play(parent, child, told)

    staged(begin)


def test_what_a_node_measures_is_no_event_of_the_engine() -> None:
    async def play(parent: End, child: End, told: Told) -> None:
        before = list(parent.events)

        child.udp.tell_measured("parent", INLET)
        await until(lambda: told == [("n01", INLET)])

        assert parent.events == before

    measuring(play)


def test_hellos_beside_it_are_as_cheap_as_before() -> None:
    """A hello that says the same again is not read again, whatever was measured meanwhile."""

    async def play(parent: End, child: End, told: Told) -> None:
        child.udp.tell_measured("parent", INLET)
        child.udp.tell("parent", HELLO)
        await until(lambda: parent.alive == [("n01",)])

        assert parent.heard == [HELLO]
        assert told == [("n01", INLET)]

    measuring(play)


def test_who_keeps_no_numbers_skips_them() -> None:
    async def play(stage: Stage) -> None:
        parent, child = stage.pair()
        await meet(parent, child)

        child.udp.tell_measured("parent", INLET)
        child.udp.tell("parent", CHANGED)
        await until(lambda: CHANGED in parent.heard)

        assert parent.heard == [HELLO, CHANGED]
        assert parent.udp.counts == {}

    staged(play)


def test_who_was_told_nothing_yet_is_sent_no_numbers() -> None:
    async def play(stage: Stage) -> None:
        _, child = stage.pair()
        child.udp.tell_measured("parent", INLET)
        child.udp.tell_measured("nobody", INLET)

        assert child.udp.counts == {"no session": 2}

    staged(play)


def test_a_flood_of_numbers_is_cut_to_a_share_and_hellos_are_heard() -> None:
    async def play(parent: End, child: End, told: Told) -> None:
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

    measuring(play)


def test_a_malformed_section_is_counted_and_changes_nothing() -> None:
    async def play(parent: End, child: End, told: Told) -> None:
        link = child.udp._by_name["parent"]
        assert link.told is not None
        child.udp._seal(link, beside(link.told, 16, b"\xc1"))
        await until(lambda: parent.udp.counts == {"section": 1})

        assert told == []

    measuring(play)
