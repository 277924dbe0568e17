"""Two engines whose datagrams are handed over, and whose questions go over real TLS."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from haptera.core.engine import Engine
from haptera.core.state.limits import MS
from haptera.core.state.side import PARENT
from haptera.daemon.channels.exchange import Exchange
from haptera.kinds import KINDS
from haptera.model.changes import Desired
from haptera.model.effects import FetchList, FetchSchema, Recall, Tell
from haptera.model.entity import EntityId
from haptera.model.events import Event, Heard, Listed
from haptera.model.facts import Method
from haptera.model.messages import Message, ObservedUpdate, SeenValue
from haptera.runtime import clock
from haptera.wire.sync import decode, encode
from haptera.wire.updates import Codec
from tests.core.scenario import row_of
from tests.daemon.channel_rig import HOST, Rig, agreement, rig

pytestmark = pytest.mark.net

SERVICES = 200
STEP_NS = 50 * MS


class Hands:
    """Carries messages between the engines, in a time of its own; `told` are their updates.

    It stands still while one side asks the other, however long that takes on this machine.
    """

    def __init__(self, one: Rig) -> None:
        self.one, self.now = one, clock.now_ns()
        self.told: list[EntityId] = []
        self.said: dict[int, Message] = {}

    async def until_whole(self) -> None:
        """Let time pass until the agent holds its parent's layer."""
        await self.step()
        while not self.whole():
            await self.step()

    def whole(self) -> bool:
        engines = self.one.parent_engine, self.one.agent_engine
        here, there = (
            {row.id: row.desired.revision for row in one.table if row.id.kind == "service"}
            for one in engines
        )
        return here == there

    async def step(self) -> None:
        one = self.one
        self.now += STEP_NS
        await self.turn(0, one.parent.exchange)
        await self.turn(1, one.agent.exchange)

    async def turn(self, side: int, exchange: Exchange) -> None:
        engines = self.one.parent_engine, self.one.agent_engine
        heard = self.one.heard[side]
        events: list[Event] = [*heard]
        heard.clear()
        me = PARENT if side == 0 else "n01"
        for effect in engines[side].handle(events, self.now):
            match effect:
                case Tell(_, message):
                    self.told += [update.entity for update in message.updates if side == 0]
                    boot = engines[side].side.instance
                    self.said[side] = message
                    self.one.heard[1 - side].append(Heard(me, boot, message, self.now))
                case FetchList() | FetchSchema() | Recall():
                    await exchange.carry_out(effect)


async def in_step(one: Rig) -> Hands:
    hands = Hands(one)
    for _ in range(60):
        await hands.step()
    assert hands.whole()
    hands.told.clear()
    return hands


def spoil(one: Rig) -> EntityId:
    """One service is held in an earlier version than it should be."""
    entity = EntityId("service", "web7", "n01")
    row = row_of(one.agent_engine, entity)
    row.desired.revision, row.link.confirmed, row.desired.values = (
        1,
        1,
        {"port": Desired(9, "parent")},
    )
    return entity


async def test_of_200_services_the_one_that_differs_costs_a_list_and_an_update(
    tmp_path: Path,
) -> None:
    async with rig(tmp_path, services=SERVICES) as one:
        hands = await in_step(one)
        entity = spoil(one)
        assert not hands.whole()
        await hands.until_whole()

        assert one.parent_counts == {"ListAsked": 1, "RecallAsked": 1}
        assert set(hands.told) == {entity}
        row = row_of(one.agent_engine, entity)
        assert row.desired.values == {"run": Desired("running", PARENT)}


async def test_where_the_parent_cannot_be_asked_all_is_told_again(tmp_path: Path) -> None:
    async with rig(tmp_path, services=SERVICES) as one:
        hands = await in_step(one)
        spoil(one)
        one.parent.join(replace(one.session, agreement=agreement(one.authority, incarnation=2)))
        await hands.until_whole()

        assert one.parent_counts == {"not admitted": 1}
        assert len(set(hands.told)) == SERVICES + 1


async def test_more_questions_than_are_kept_are_answered_as_if_nobody_were_there(
    tmp_path: Path,
) -> None:
    async with rig(tmp_path) as one:
        for number in range(10_001):
            one.parent.exchange.send(FetchList(f"n{number}"))
        assert one.heard[0] == [Listed("n10000", None)]


async def test_sides_with_other_modules_say_which_and_read_each_others_words(
    tmp_path: Path,
) -> None:
    async with rig(tmp_path, version="2") as one:
        hands = Hands(one)
        while not all(side in hands.said and hands.said[side].reads for side in (0, 1)):
            await hands.step()
        await hands.step()

        web = EntityId("service", "web", "n01")
        whys = [row.stance.why for engine in engines(one) if (row := engine.table.get(web))]
        assert whys[1] == "the parent runs service 1, here is service 2"
        assert differs(one) == "the agent of n01 runs service 2, here is service 1"
        assert (one.parent_counts, one.agent.counts) == ({"SchemaAsked": 1}, {"SchemaAsked": 1})

        seen = {"run": SeenValue("running", True, Method.READ, 0, "service")}
        update = ObservedUpdate(web, 3, seen)
        told = msgspec.structs.replace(hands.said[1], updates=(update,))
        agents, parents = one.codecs[1], one.codecs[0]
        (body,) = encode(told, agents, agents.schema)
        assert decode(body, parents, "n01") == told
        stranger = Codec(KINDS.values(), 0x53)
        assert decode(body, stranger, "n01") == msgspec.structs.replace(told, updates=())


def engines(one: Rig) -> tuple[Engine, Engine]:
    return one.parent_engine, one.agent_engine


def differs(one: Rig) -> str | None:
    """In what the agent plans services otherwise, as its parent knows."""
    engine = one.parent_engine
    return engine.neighbours.links.differs_over("n01", "service", engine.catalog.schema)


async def test_a_schema_that_cannot_be_had_is_asked_for_again_later(tmp_path: Path) -> None:
    async with rig(tmp_path, version="2") as one:
        one.parent.join(replace(one.session, address=(HOST, 1)))
        hands = Hands(one)
        while 1 not in hands.said or not hands.said[1].reads:
            await hands.step()
        assert not hands.said[0].reads
        assert differs(one) == "the agent of n01 runs other modules"
        one.parent.join(one.session)
        for _ in range(20):
            await hands.step()
        assert not hands.said[0].reads
        hands.now += 25_000 * MS
        while not hands.said[0].reads:
            await hands.step()
