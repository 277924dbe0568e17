"""Keys of sessions that live for long: other ones each day, and nothing is lost by that."""

import asyncio
import contextlib
from dataclasses import replace
from itertools import count, groupby, pairwise
from pathlib import Path

import msgspec
import pytest

from haptera.core.state.limits import S
from haptera.daemon.channels import rekeying
from haptera.daemon.channels.parent_channel import ParentChannel
from haptera.daemon.channels.rekeying import REKEY_S, rekey
from haptera.daemon.channels.sessions import Sessions
from haptera.kinds import KINDS
from haptera.model.events import Event, Heard
from haptera.model.messages import Mark, Message
from haptera.runtime.identity.pki import new_key
from haptera.runtime.network.peer_messages import ListAsked, ListTold
from haptera.runtime.network.udp import Udp
from haptera.testing.clock import Clock
from haptera.testing.loop import SimulatedLoop
from haptera.wire.seal import SealRole, Session
from haptera.wire.updates import Codec
from tests.daemon.channel_rig import HOST, Wall, engine_of, no_work
from tests.runtime.test_enrol import call, parent

HELLO = Message(1, 0, 77, Mark(1, 1, 1), Mark(0, 0, 0))
NUMBERS = count(1)
DAYS = TIMES = 5


def rekeyed(peers: list[str], days: float) -> list[tuple[float, str]]:
    """When, in seconds from now, which peers get other keys."""
    clock = Clock(1)
    found: list[tuple[float, str]] = []
    began = clock.now

    async def run() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(days * REKEY_S):
                await rekey(lambda: peers, lambda one: found.append(((clock.now - began) / S, one)))

    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(clock)) as runner:
        runner.run(run())
    return found


def test_each_peer_has_other_keys_once_a_day_spread_over_it() -> None:
    names = [f"n{at:02}" for at in range(24)]
    found = rekeyed(names, DAYS)

    assert found[0][0] <= REKEY_S
    assert (DAYS - 1) * len(names) - 1 <= len(found) <= DAYS * len(names)
    assert [name for _, name in found] == (names * DAYS)[: len(found)]
    gaps = [after - before for (before, _), (after, _) in pairwise(found)]
    assert gaps == pytest.approx([REKEY_S / len(names)] * len(gaps))


def test_who_has_no_peers_waits_for_some() -> None:
    assert rekeyed([], DAYS) == []


@pytest.mark.net
async def test_what_is_said_while_keys_change_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rekeying, "REKEY_S", 0.02)

    async with parent(tmp_path / "p") as one:
        await call(one.invite(), new_key())
        codec, engine = Codec(KINDS.values(), schema=77), engine_of(None, 1)
        channel = ParentChannel(one.authority, engine, codec, lambda _: None, Wall(), None, no_work)
        up, down = Udp.bind(HOST, 0), Udp.bind(HOST, 0)
        with contextlib.closing(up), contextlib.closing(down):
            sessions = Sessions(one.store, up, channel, 0xB1, lambda _: True)
            at_parent: list[Event] = []
            at_node: list[Event] = []
            up.start(codec, at_parent.extend, sessions.moved)
            down.start(codec, at_node.extend, lambda *_: None)
            (saved,) = one.store.sessions()
            sessions.join(replace(saved, address=(HOST, down.port)))
            node = Session(saved.agreement, SealRole.CHILD, 0xA1)
            down.add("parent", node, (HOST, up.port))

            changing = asyncio.create_task(sessions.run())
            while len(boots(at_node)) < TIMES:
                await say_both_ways(up, down)
            changing.cancel()
            before = len(words(at_parent)), len(words(at_node))
            while not (len(words(at_parent)) > before[0] and len(words(at_node)) > before[1]):
                await say_both_ways(up, down)

            told = channel.exchange.answer("n01", ListAsked())
            assert isinstance(told, ListTold)
            assert told.boot == boots(at_node)[-1]
            assert len({*boots(at_node)}) == len(boots(at_node))
            assert boots(at_parent) == [0xA1]


async def say_both_ways(up: Udp, down: Udp) -> None:
    number = next(NUMBERS)
    message = msgspec.structs.replace(HELLO, desired=Mark(1, number, number))
    up.tell("n01", message)
    down.tell("parent", message)
    await asyncio.sleep(0.001)


def words(events: list[Event]) -> list[Heard]:
    return [one for one in events if isinstance(one, Heard)]


def boots(events: list[Event]) -> list[int]:
    """As whom the other end spoke, each for as long as it did."""
    return [boot for boot, _ in groupby(words(events), key=lambda one: one.boot)]
