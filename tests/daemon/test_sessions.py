"""The end of a node's session: by a person, or as it is no longer declared."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from haptera.daemon.channels.parent_channel import ParentChannel
from haptera.daemon.channels.sessions import PAUSED_S, Sessions
from haptera.kinds import KINDS
from haptera.model.entity import node_id
from haptera.model.errors import HapteraError
from haptera.runtime.enrolment.enrol import Enrolment
from haptera.runtime.identity.pki import new_key
from haptera.runtime.network.peer_messages import Answer, ListAsked, Unable
from haptera.runtime.network.udp import Udp
from haptera.wire.updates import Codec
from tests.daemon.channel_rig import HOST, Wall, engine_of, no_work, rig
from tests.lab.rig import until
from tests.runtime.test_enrol import Parent, call, parent

pytestmark = pytest.mark.net

# The same claim again, with the same key.
Again = Callable[[], Awaitable[Enrolment]]
# What the node's agent answers, by which it is seen whether it is asked.
Ask = Callable[[], Awaitable[Answer]]
# As whom the parent speaks to those whom it hears, after a turn of the loop.
Heard = Callable[[], Awaitable[set[int]]]
NOT_ENROLLED = Unable("the agent of n01 has not enrolled yet")
HUNG_UP = Unable("the parent closed the connection without an answer")


@contextlib.asynccontextmanager
async def enrolled(
    place: Path, declared: set[str], paused_s: float = PAUSED_S
) -> AsyncIterator[tuple[Parent, Sessions, Again, Ask, Heard]]:
    """A parent and its sessions, of which n01 has one."""
    async with parent(place) as one:
        invitation, key = one.invite(), new_key()
        await call(invitation, key)
        codec, engine = Codec(KINDS.values(), schema=77), engine_of(None, 1)
        channel = ParentChannel(one.authority, engine, codec, lambda _: None, Wall(), None, no_work)
        with contextlib.closing(Udp.bind(HOST, 0)) as udp:
            sessions = Sessions(
                one.store,
                udp,
                channel,
                0xB1,
                declared.__contains__,
                goodbye_s=0.01,
                paused_s=paused_s,
            )

            async def heard() -> set[int]:
                await asyncio.sleep(0)
                return {*channel.exchange.boots.values()}

            udp.start(codec, lambda _: None, sessions.moved)
            sessions.open()
            yield (
                one,
                sessions,
                lambda: call(invitation, key),
                lambda: channel.ask("n01", ListAsked()),
                heard,
            )


async def test_who_is_put_out_has_no_session_and_none_for_the_same_token(tmp_path: Path) -> None:
    async with enrolled(tmp_path / "p", {"n01"}) as (one, sessions, again, ask, _):
        assert await sessions.evict("n01") == 1
        assert await sessions.evict("n01") is None
        assert one.store.sessions() == []
        assert await ask() == NOT_ENROLLED
        with pytest.raises(HapteraError, match="the parent refused the token"):
            await again()


async def test_what_a_parent_above_was_not_told_of_is_found_by_how_far_it_has_counted(
    tmp_path: Path,
) -> None:
    async with enrolled(tmp_path / "p", {"n01"}) as (_, sessions, *_rest):
        told = [[one.peer for one in sessions.beyond({"n01": n})] for n in (0, 1, 2)]
        assert told == [["n01"], [], []]
        assert sessions.beyond({"n02": 0}) == [], "it is none of that parent's nodes"


async def test_a_node_that_is_not_declared_is_not_heard_until_it_is_declared_again(
    tmp_path: Path,
) -> None:
    declared = {"n01"}
    async with enrolled(tmp_path / "p", declared) as (one, sessions, *_, heard):
        sessions.heed([node_id("n01"), node_id("n02")])
        assert await heard() == {0xB1}, "as whom the parent speaks"
        declared.clear()
        sessions.heed([node_id("n01")])
        while await heard():
            pass
        assert len(one.store.sessions()) == 1
        declared.add("n01")
        sessions.heed([node_id("n01")])
        (boot,) = await heard()
        assert boot != 0xB1, "a key is not used from its beginning twice"


async def test_who_was_put_out_stays_out_however_often_it_is_declared(tmp_path: Path) -> None:
    declared = {"n01"}
    async with enrolled(tmp_path / "p", declared) as (one, sessions, again, ask, heard):
        declared.clear()
        sessions.heed([node_id("n01")])
        while await heard():
            pass
        assert await sessions.evict("n01") == 1
        declared.add("n01")
        sessions.heed([node_id("n01")])
        assert (await heard(), one.store.sessions()) == (set(), [])
        assert await ask() == NOT_ENROLLED
        with pytest.raises(HapteraError, match="the parent refused the token"):
            await again()


async def test_who_boots_after_a_pause_is_heard_by_its_new_session(
    tmp_path: Path,
) -> None:
    declared = {"n01"}
    async with enrolled(tmp_path / "p", declared) as (one, sessions, *_, heard):
        declared.clear()
        sessions.heed([node_id("n01")])
        while await heard():
            pass
        declared.add("n01")
        (saved,) = one.store.sessions()
        sessions.join(replace(saved, agreement=replace(saved.agreement, incarnation=2)))
        sessions.heed([node_id("n01")])
        assert await heard() == {0xB1}
        assert sessions.incarnation("n01") == 2


async def test_who_is_not_declared_for_long_is_put_out(tmp_path: Path) -> None:
    declared = {"n01"}
    async with enrolled(tmp_path / "p", declared, paused_s=0.01) as (one, sessions, *_):
        declared.clear()
        sessions.heed([node_id("n01")])
        await until(lambda: not one.store.sessions())


async def test_who_was_undeclared_while_nobody_served_is_put_out(tmp_path: Path) -> None:
    async with enrolled(tmp_path / "p", set(), paused_s=0.01) as (one, *_):
        await until(lambda: not one.store.sessions())


async def test_an_undeclared_node_is_answered_nothing_from_then_on(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        assert one.parent.declares("n01")
        one.parent_engine.table.remove(node_id("n01"))
        assert await one.agent.ask("parent", ListAsked()) == HUNG_UP
        assert one.parent_counts == {"not admitted": 1}


async def test_a_node_that_was_put_out_is_answered_nothing_and_asked_nothing(
    tmp_path: Path,
) -> None:
    async with rig(tmp_path) as one:
        one.parent.leave(one.session)
        assert await one.agent.ask("parent", ListAsked()) == HUNG_UP
        asked = await one.parent.ask("n01", ListAsked())
        assert asked == NOT_ENROLLED
