"""Calls of one part that come together: one call of its function, an answer for each."""

import asyncio
from collections.abc import Mapping
from typing import Any

from haptera.model.entity import EntityId, node_id
from haptera.sdk import Refused
from haptera.sdk.gathering import TOGETHER_MAX, Gathering

NODES = [node_id(f"n{number}") for number in range(1, 5)]


class Rack:
    """A function of many: what it was asked, and what it tells of each."""

    def __init__(self, tells: Any) -> None:
        self.asked: list[dict[EntityId, Any]] = []
        self.tells = tells
        self.go = asyncio.Event()
        self.go.set()
        self.began, self.cancelled = asyncio.Event(), asyncio.Event()

    async def __call__(self, made: Mapping[EntityId, Any]) -> Any:
        self.asked.append({**made})
        self.began.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if isinstance(self.tells, Exception):
            raise self.tells
        return self.tells


def in_time() -> None:
    """It can still be begun."""


def too_late() -> None:
    raise Refused("too late")


async def answers(gathering: Gathering, nodes: list[EntityId]) -> list[Any]:
    asked = (gathering.answer(one, one.name, in_time) for one in nodes)
    return await asyncio.gather(*asked, return_exceptions=True)


async def test_each_is_answered_by_itself_of_one_call() -> None:
    jammed = Refused("jammed")
    rack = Rack({NODES[0]: "on", NODES[1]: jammed, NODES[2]: None})
    found = await answers(Gathering(rack), NODES)
    assert rack.asked == [{one: one.name for one in NODES}]
    assert found[:3] == ["on", jammed, None]
    assert str(found[3]) == "it returned nothing for node:n4"


async def test_what_it_raises_went_wrong_with_all_and_nothing_told_is_done() -> None:
    error = OSError("no route")
    assert await answers(Gathering(Rack(error)), NODES) == [error] * 4
    assert await answers(Gathering(Rack(None)), NODES) == [None] * 4
    told = await answers(Gathering(Rack("on")), NODES)
    assert {str(one) for one in told} == {"it returned str instead of a mapping of entities"}


async def test_who_is_too_late_when_it_begins_is_left_out() -> None:
    rack = Rack({NODES[0]: "on"})
    gathering = Gathering(rack)
    first, late = await asyncio.gather(
        gathering.answer(NODES[0], "n1", in_time),
        gathering.answer(NODES[1], "n2", too_late),
        return_exceptions=True,
    )
    assert (first, str(late), list(rack.asked[0])) == ("on", "too late", NODES[:1])


async def test_a_call_ends_when_the_last_one_who_waited_for_it_is_gone() -> None:
    rack = Rack(None)
    rack.go.clear()
    gathering = Gathering(rack)
    tasks = [asyncio.create_task(gathering.answer(one, "", in_time)) for one in NODES[:2]]
    async with asyncio.timeout(60):
        await rack.began.wait()
        tasks[0].cancel()
        await asyncio.wait(tasks[:1])
        assert not rack.cancelled.is_set()
        tasks[1].cancel()
        await rack.cancelled.wait()


async def test_no_call_is_of_more_than_it_may_and_the_same_entity_waits_for_the_next() -> None:
    rack = Rack(None)
    nodes = [node_id(f"n{number}") for number in range(TOGETHER_MAX + 1)]
    await answers(Gathering(rack), [*nodes, nodes[-1]])
    assert [len(one) for one in rack.asked] == [TOGETHER_MAX, 1, 1]
