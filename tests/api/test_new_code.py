"""Each field that is code, by each way in, with each token: who may write may not have code run."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from haptera.api.app import make_app
from haptera.api.backend import Backend
from haptera.core.desired.new_code import scope_of
from haptera.kinds import KINDS
from haptera.model.changes import Author, Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.token_scope import Scope
from haptera.modules import BUNDLED, load
from haptera.runtime.identity.tokens import Bearer
from haptera.runtime.processes.control import Control
from haptera.sdk import Context
from haptera.site import Sites
from tests.api.asking import asked
from tests.api.real_backend import comes, real_backend
from tests.kinds.code_fields import plain_code

N1 = node_id("n1")
OWNER = "user:op"
ADMIN = Author(OWNER, may=Scope.ADMIN)
# Those that are not any text.
VALUES = {"ready": "command true", "user": "eve"}
# By name: what a token allows, and whether it is limited to node n1 and what is on it.
CALLERS = {
    "writer": (Scope.WRITE, None),
    "limited writer": (Scope.WRITE, "n1 or service:*@n1 or module:*@n1"),
    "runner": (Scope.EXEC, None),
    "limited runner": (Scope.EXEC, "n1"),
    "admin": (Scope.ADMIN, None),
}
# Without that of groups, whose controller writes, too.
MODULES = tuple(one for one in BUNDLED if one != "replica")
Field = tuple[EntityId, str, str, str]


def fields() -> Iterator[Field]:
    """Each field that is code, on an entity that has it: its name, and two values, as desired."""
    for kind, one in plain_code():
        on_node = not KINDS[kind].of_cluster
        entity = EntityId(kind, "x.0" if kind == "replica" else "x", "n1" if on_node else None)
        value = VALUES.get(one.name, "/tmp/x")
        yield entity, one.name, value, f"{value}y"
    for name in MODULES:
        manifest = load(name).manifest()
        entity = EntityId("module", name, "n1" if manifest.context is Context.SELF else None)
        for setting in manifest.settings or ():
            for path in setting.code:
                given = [
                    json.dumps({setting.name: [text] if path else text}) for text in ("/a", "/b")
                ]
                yield entity, "settings", *given


FIELDS = [*fields()]
Ask = Callable[..., Awaitable[Any]]


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[tuple[Backend, Ask]]:
    """A parent with all modules, node n1, and each field as it is at first; what asks it."""
    entities = dict.fromkeys(one[0] for one in FIELDS if one[0].kind != "module")
    values = {(entity, name): first for entity, name, first, _ in FIELDS}
    there = [Declare(N1, {}, OWNER), *(Declare(one, {}, OWNER) for one in entities)]
    async with real_backend(folder, *there, modules=MODULES) as backend:
        for (entity, name), value in values.items():
            await give(backend, entity, name, value)
        app = make_app(backend, Sites("quick", MODULES), cluster="quick")
        tokens = {}
        for name, (scope, within) in CALLERS.items():
            tokens[name] = (await backend.tokens.mint(Bearer("op", scope, within), 600)).text

        async def ask(caller: str, method: str, path: str, body: object = None) -> Any:
            sent = b"" if body is None else json.dumps(body).encode()
            return await asked(app, method, path, tokens[caller], sent, {"host": "127.0.0.1:4270"})

        yield backend, ask


async def give(backend: Backend, entity: EntityId, name: str, value: str) -> int:
    reply = await backend.desires.propose((SetDesired(entity, name, value, OWNER),), None, ADMIN)
    assert reply.revision is not None, reply
    return reply.revision


async def patch(ask: Ask, caller: str, field: Field, _backend: Backend) -> tuple[int, str]:
    entity, name, _, value = field
    answer = await ask(caller, "PATCH", f"/v1/entities/{entity}/desired", {name: value})
    return answer.status, answer.body.decode()


async def bulk(ask: Ask, caller: str, field: Field, _backend: Backend) -> tuple[int, str]:
    entity, name, _, value = field
    patches = {"patches": [{"entity": str(entity), "desired": {name: value}}]}
    (one,) = (await ask(caller, "POST", "/v1/bulk", patches)).json["results"]
    return one["status"], str(one)


async def site(ask: Ask, caller: str, field: Field, backend: Backend) -> tuple[int, str]:
    body = await _exported(ask, field, backend)
    answer = await ask(caller, "POST", "/v1/apply?take=1", body)
    return answer.status, answer.body.decode()


async def plan(ask: Ask, caller: str, field: Field, backend: Backend) -> tuple[int, str]:
    body = await _exported(ask, field, backend)
    shown = await ask(caller, "POST", "/v1/apply?take=1&dry_run=1", body)
    digest = shown.json["plan"]["digest"] if shown.status == 200 else "0" * 16
    answer = await ask(caller, "POST", f"/v1/apply?take=1&digest={digest}", body)
    return answer.status, answer.body.decode()


async def _exported(ask: Ask, field: Field, backend: Backend) -> dict[str, Any]:
    """A site file in which the field alone is another than now."""
    entity, name, first, value = field
    await give(backend, entity, name, value)
    text = (await ask("admin", "GET", "/v1/export")).json["text"]
    await give(backend, entity, name, first)
    return {"files": [{"name": "site.yaml", "text": text}]}


async def revert(ask: Ask, caller: str, field: Field, backend: Backend) -> tuple[int, str]:
    entity, name, first, value = field
    await give(backend, entity, name, value)
    revision = await give(backend, entity, name, first)
    answer = await ask(caller, "POST", f"/v1/revert/{revision}")
    return answer.status, answer.body.decode()


@pytest.mark.parametrize("way", [patch, bulk, site, plan, revert])
async def test_code_is_changed_only_with_the_scope_of_who_may_run_it(
    tmp_path: Path, way: Any
) -> None:
    assert len(FIELDS) > 20
    async with cluster(tmp_path) as (backend, ask):
        for field in FIELDS:
            entity, name, first, value = field
            needed = scope_of(KINDS[entity.kind], entity)
            await give(backend, entity, name, first)
            for caller, (scope, within) in CALLERS.items():
                status, told = await way(ask, caller, field, backend)
                reaches = within is None or (entity.node and way in (patch, bulk))
                may = scope.includes(needed) and reaches
                now = backend.desires.declared(entity).desired[name].value
                assert (status, now) == ((200, value) if may else (403, first)), (
                    caller,
                    field,
                    told,
                )
                if not may and within is None:
                    shown = name if name != "settings" else next(iter(json.loads(value)))
                    assert shown in told, told
                    assert f"scope {needed}" in told
                await give(backend, entity, name, first)


async def test_a_controller_hands_on_what_a_group_runs_and_no_other_code(tmp_path: Path) -> None:
    answers: list[Any] = []

    class Link:
        def send(self, frame: Any) -> None:
            answers.append(frame)

        def hold(self) -> None: ...
        def go_on(self) -> None: ...

    async with cluster(tmp_path) as (backend, _):
        control = Control("eve", backend, Link())
        running = asyncio.create_task(control.run())
        for entity, name, _, value in FIELDS:
            if name != "settings" and entity.kind == "replica":
                await give(backend, entity, name, value)
        for entity, name, first, value in FIELDS:
            handed_on = entity.kind == "replica"
            wanted = first if handed_on else value
            frame = {"op": "write", "id": 1, "owner": OWNER, "if_revision": None}
            frame |= {"desired": {str(entity): {name: wanted}}, "declare": {}, "undeclare": []}
            control.take(frame)
            await comes(lambda: bool(answers), lambda: (entity, name))  # noqa: B023
            answer = answers.pop()
            assert (answer["op"] == "refused") is not handed_on, answer
            assert handed_on or "takes a token of scope" in answer["text"]
        running.cancel()


async def test_what_is_no_code_is_changed_as_before(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (_, ask):
        for entity, desired in (
            ("module:system@n1", {"settings": json.dumps({"detach": "/a", "scratch_mb": 2})}),
            ("module:system@n1", {"settings": json.dumps({"scratch_mb": 2})}),
            ("service:x@n1", {"port": 80, "run": "running", "command": "/tmp/x"}),
            ("service:x@n1", {"command": None}),
            ("node:n1", {"minos": "other"}),
        ):
            answer = await ask("writer", "PATCH", f"/v1/entities/{entity}/desired", desired)
            assert answer.status == 200, answer.body
