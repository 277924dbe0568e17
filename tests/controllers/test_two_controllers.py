"""R3: two controllers of groups at once, on a real engine and store; only one of them is heeded."""

import asyncio
from pathlib import Path
from typing import Any

from haptera.api.backend import Backend
from haptera.controllers.groups import controller, keep_groups
from haptera.model.changes import Author, Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.token_scope import Scope
from haptera.runtime.processes.control import Control
from haptera.sdk import Cluster
from tests.api.real_backend import comes, real_backend

NODES = ("n1", "n2", "n3")
GROUP = EntityId("group", "g", None)


def a_group(replicas: int) -> list[Declare | SetDesired]:
    desired = {"command": "serve", "replicas": replicas, "leader": "none"}
    return [
        *(Declare(node_id(name), {}, "site") for name in NODES),
        Declare(GROUP, {}, "site"),
        *(SetDesired(GROUP, name, value, "site") for name, value in desired.items()),
    ]


class Link:
    """A controller, and its way to the parent: while it is stopped, nothing that it wrote comes."""

    def __init__(self, backend: Backend, *, stopped: bool) -> None:
        self.stopped = stopped
        self.underway: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        self.cluster: Cluster[Any] = Cluster(controller.name, None, self.asked, float)
        self.control = Control(controller.name, backend, self)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.control.run())
            tasks.create_task(keep_groups(self.cluster))

    def asked(self, frame: dict[str, Any]) -> None:
        if self.stopped and frame["op"] == "write":
            self.underway.append(frame)
        else:
            asyncio.get_running_loop().call_soon(self.control.take, frame)

    def go_on(self) -> None:
        self.stopped = False
        for frame in self.underway:
            self.control.take(frame)

    def send(self, frame: dict[str, Any]) -> None:
        self.answers.append(frame)
        asyncio.get_running_loop().call_soon(self.cluster.take, frame)

    def hold(self) -> None:
        raise AssertionError("it waits for each answer")


def placed(backend: Backend) -> list[str]:
    """The replicas that are to run."""
    names = [EntityId("replica", f"g.{rank}", on) for rank in (0, 1) for on in NODES]
    views = [view for one in names if (view := backend.queries.entity(one)) is not None]
    return [view.entity for view in views if view.desired["run"].value == "running"]


async def test_r3_what_an_earlier_controller_still_writes_is_refused_whole(tmp_path: Path) -> None:
    async with real_backend(tmp_path, *a_group(replicas=2)) as backend:
        old, new = (Link(backend, stopped=one) for one in (True, False))
        running = [asyncio.create_task(old.run())]
        await comes(lambda: bool(old.underway), lambda: old.answers)
        running.append(asyncio.create_task(new.run()))
        await comes(lambda: len(placed(backend)) == 2, lambda: placed(backend))
        fewer = (SetDesired(GROUP, "replicas", 1, "site"),)
        assert (
            await backend.desires.propose(fewer, None, Author("site", may=Scope.ADMIN))
        ).refusal is None
        await comes(lambda: len(placed(backend)) == 1, lambda: placed(backend))

        before, revision, answers = placed(backend), backend.desires.revision(), len(old.answers)
        old.go_on()
        await comes(lambda: len(old.answers) > answers, lambda: old.answers)
        refused = old.answers[answers]
        assert (refused["op"], refused.get("conflict")) == ("refused", True)
        assert (placed(backend), backend.desires.revision()) == (before, revision)
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)
