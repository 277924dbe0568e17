"""Serving a controller: what it is told, what it may write, and that it takes its share only."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from haptera.core.state.limits import MS
from haptera.model.changes import Declare, SetDesired, Undeclare
from haptera.model.entity import EntityId, node_id
from haptera.runtime.processes.control import (
    REQUESTS_MAX,
    REST_PER_WORK,
    VIEWS_PER_FRAME,
    WATCHES_MAX,
    Control,
)
from haptera.testing.clock import Clock
from haptera.testing.loop import SimulatedLoop
from tests.api.fake_backend import FakeBackend

WAIT_S = 60
N1, N2 = node_id("n1"), node_id("n2")
WEB1 = EntityId("service", "web", "n1")
ALL = {"types": None, "kinds": None, "select": None}
NOTHING = {"desired": {}, "declare": {}, "undeclare": [], "if_revision": None}

Answer = dict[str, Any]


class Talk:
    """Somebody who speaks frames to a `Control` over a cluster of two nodes."""

    def __init__(self) -> None:
        self.backend = FakeBackend()
        self.backend.write(Declare(N1, {}, "site"), Declare(N2, {}, "site"))
        self.backend.write(SetDesired(N2, "power", "on", "site"))
        self.answers: asyncio.Queue[Answer] = asyncio.Queue()
        self.held: list[bool] = []
        self.control = Control("mine", self.backend, self)

    def send(self, frame: Answer) -> None:
        self.answers.put_nowait(frame)

    def hold(self) -> None:
        self.held.append(True)

    def go_on(self) -> None:
        self.held.append(False)

    def say(self, op: str, number: int, **keys: Any) -> None:
        self.control.take({"op": op, "id": number, **keys})

    async def ask(self, op: str, number: int, **keys: Any) -> Answer:
        self.say(op, number, **keys)
        return await self.answers.get()

    async def write(self, **keys: Any) -> Answer:
        return await self.ask("write", 9, **(NOTHING | keys))


@asynccontextmanager
async def talk(make: Callable[[], Talk] = Talk) -> AsyncIterator[Talk]:
    """A conversation."""
    one = make()
    task = asyncio.ensure_future(one.control.run())
    async with asyncio.timeout(WAIT_S):
        yield one
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def names(answer: Answer) -> list[str]:
    return [view["entity"] for view in answer["entities"]]


async def test_a_watch_is_told_as_often_as_it_asks_and_each_entity_once() -> None:
    async with talk() as one:
        first = await one.ask("watch", 1, types=["condition"], kinds=["node"], select="n1")
        assert (first["fresh"], names(first)) == (True, ["node:n1"])
        for why in ("first", "second", "third"):
            one.backend.say(N1, why=why)
        one.backend.say(N2, why="not watched")
        assert names(await one.ask("read", 2, select="node:n2", after=None)) == ["node:n2"]
        told = await one.ask("next", 1)
        assert [view["why"] for view in told["entities"]] == ["third"]
        assert told["types"] == {"node:n1": ["condition"]}


async def test_what_is_watched_no_more_is_not_told() -> None:
    async with talk() as one:
        await one.ask("watch", 1, **ALL)
        one.say("unwatch", 1)
        one.backend.say(N1, why="nobody listens")
        refused = await one.ask("next", 1)
        assert refused["text"] == "nothing is watched under 1"


async def test_a_watch_that_changes_all_the_time_does_not_starve_another() -> None:
    class Eager(Talk):
        """Asks for more of watch 1 at once, of which there is always more."""

        def send(self, frame: Answer) -> None:
            super().send(frame)
            if frame["id"] == 1:
                self.backend.say(N1, why="changes all the time")
                self.say("next", 1)

    async with talk(Eager) as one:
        one.say("watch", 1, types=None, kinds=None, select="n1")
        one.say("watch", 2, types=None, kinds=None, select="n2")
        assert 2 in [(await one.answers.get())["id"] for _ in range(4)]


async def test_who_asks_faster_than_is_answered_is_not_heard_meanwhile() -> None:
    async with talk() as one:
        for number in range(REQUESTS_MAX + 5):
            one.say("read", number, select="*", after=None)
        assert one.held == [True]
        answers = [(await one.answers.get())["id"] for _ in range(REQUESTS_MAX + 5)]
        assert answers == list(range(REQUESTS_MAX + 5))
        assert one.held == [True, False]


async def test_so_many_watches_are_open_at_once() -> None:
    async with talk() as one:
        for number in range(WATCHES_MAX):
            assert (await one.ask("watch", number, **ALL))["op"] == "told"
        assert (await one.ask("watch", 99, **ALL))["op"] == "refused"
        one.say("unwatch", 0)
        assert (await one.ask("watch", 99, **ALL))["op"] == "told"


async def test_many_entities_are_read_and_told_in_slices() -> None:
    async with talk() as one:
        count = VIEWS_PER_FRAME + 10
        more = [Declare(node_id(f"m{at:03}"), {}, "site") for at in range(count)]
        one.backend.write(*more)
        first = await one.ask("read", 1, select="node:m*", after=None)
        rest = await one.ask("read", 2, select="node:m*", after=first["after"])
        assert (len(names(first)), rest["after"]) == (VIEWS_PER_FRAME, None)
        assert names(first) + names(rest) == [str(one.entity) for one in more]

        told = [await one.ask("watch", 3, **ALL), await one.ask("next", 3)]
        assert [(one["fresh"], one["cursor"] is None) for one in told] == [
            (True, True),
            (False, False),
        ]


async def test_a_picture_has_what_was_declared_by_its_revision() -> None:
    """What is written with that revision is refused if more was declared: it was not seen."""
    async with talk() as one:
        count = VIEWS_PER_FRAME + 10
        one.backend.write(*(Declare(node_id(f"m{at:03}"), {}, "site") for at in range(count)))
        told = [await one.ask("watch", 1, **ALL)]
        one.backend.write(Declare(node_id("late"), {}, "site"))
        revision = one.backend.revision()
        while told[-1]["cursor"] is None:
            one.backend.say(N1, why=f"{len(told)}")
            told.append(await one.ask("next", 1))

        there = {name for answer in told for name in names(answer)}
        assert there == {str(one) for one in one.backend.bus.there()}
        assert told[-1]["revision"] == revision
        one.backend.write(Declare(node_id("later"), {}, "site"))
        wishes = {"node:n1": {"power": "on"}}
        refused = await one.write(desired=wishes, if_revision=told[-1]["revision"])
        assert (refused["op"], refused["conflict"]) == ("refused", True)


async def test_what_is_written_belongs_to_the_controller() -> None:
    async with talk() as one:
        web = {"service:web@n1": {"run": "running"}}
        written = await one.write(declare={"service:web@n1": {}}, desired=web)
        assert written == {"op": "written", "id": 9, "revision": one.backend.revision()}
        held = one.backend.store[WEB1]
        assert (held.owner, held.desired["run"].owner) == ("controller:mine", "controller:mine")
        # It is so already.
        assert await one.write(declare={"service:web@n1": {}}, desired=web) == written
        assert (await one.write(undeclare=["service:web@n1"]))["op"] == "written"
        assert WEB1 not in one.backend.store


@pytest.mark.parametrize(
    ("keys", "text", "conflict"),
    [
        ({"desired": {"node:n2": {"power": "on"}}}, "belongs to site, who wants on", True),
        ({"desired": {"node:n2": {"power": None}}}, "have site release it", True),
        ({"declare": {"node:n1": {"rack": "1"}}}, "node:n1 was declared by site", True),
        ({"undeclare": ["node:n1"]}, "node:n1 also belongs to site", True),
        ({"desired": {"node:n1": {"power": "on"}}, "if_revision": 1}, "changed meanwhile", True),
        ({"desired": {"node:n9": {"power": "on"}}}, "there is no node:n9", False),
        ({"desired": {"node:n1": {"powr": "on"}}}, "no variable 'powr'", False),
        ({"desired": {"n1": {"power": "on"}}}, "'n1' is not an entity name", False),
        ({"declare": {"moon:n1": {}}}, "there is no kind 'moon'", False),
    ],
)
async def test_what_cannot_be_written_is_refused_whole(
    keys: dict[str, Any], text: str, conflict: bool
) -> None:
    async with talk() as one:
        before = await one.backend.stored()
        keys["desired"] = {"node:n1": {"agent": "up"}} | keys.get("desired", {})
        refused = await one.write(**keys)
        assert (refused["op"], refused["conflict"]) == ("refused", conflict)
        assert text in refused["text"]
        assert await one.backend.stored() == before


async def test_a_node_does_not_go_while_something_is_on_it() -> None:
    async with talk() as one:
        await one.write(declare={"node:n3": {}, "service:web@n3": {}})
        refused = await one.write(undeclare=["node:n3"])
        assert "service:web@n3 is on node:n3" in refused["text"]
        await one.ask("watch", 1, **ALL)
        both = ["node:n3", "service:web@n3"]
        assert (await one.write(undeclare=both))["op"] == "written"
        assert (await one.ask("next", 1))["gone"] == ["service:web@n3", "node:n3"]


async def test_what_changes_meanwhile_is_taken_into_account() -> None:
    async with talk() as one:
        one.backend.meanwhile = lambda: one.backend.write(SetDesired(N1, "power", "off", "site"))
        refused = await one.write(desired={"node:n1": {"power": "on"}})
        assert "power of node:n1 belongs to site, who wants off" in refused["text"]


async def test_who_is_no_longer_served_listens_no_more() -> None:
    async with talk() as one:
        await one.ask("watch", 1, **ALL)
        assert one.backend.bus.listeners == 1
    assert one.backend.bus.listeners == 0


@pytest.mark.parametrize("frame", [{}, {"op": "ended", "id": 1}, {"op": "read", "id": 1}])
async def test_what_means_nothing_is_an_error(frame: Answer) -> None:
    async with talk() as one:
        with pytest.raises(ValueError, match="is not known"):
            one.control.take(frame)


def test_a_controller_that_asks_and_asks_takes_a_fifth_of_the_time_at_most() -> None:
    """On a simulated clock, on which each question takes 10 ms of the daemon."""
    clock = Clock(0)
    one, count = Talk(), 20

    class Slow(FakeBackend):
        def entity(self, entity: EntityId) -> Any:
            clock.now += 10 * MS
            return super().entity(entity)

    one.backend.__class__ = Slow
    clock.after(10**15, lambda: None)
    loop = SimulatedLoop(clock)

    async def hold() -> None:
        task = asyncio.ensure_future(one.control.run())
        for number in range(count):
            await one.ask("read", number, select="node:n1", after=None)
        task.cancel()

    began = clock.now
    loop.run_until_complete(hold())
    loop.close()
    assert clock.now - began >= (count - 1) * 10 * MS * (1 + REST_PER_WORK)


async def test_a_gone_entity_is_told_as_gone() -> None:
    async with talk() as one:
        await one.ask("watch", 1, **ALL)
        one.backend.write(Undeclare(N1))
        assert (await one.ask("next", 1))["gone"] == ["node:n1"]
