"""The page on frames shows how a controller speaks; both real ends must hold that conversation."""

import asyncio
import json
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from haptera.core.views.bus import Bus
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from haptera.runtime.processes.control import Control
from haptera.sdk import Cluster, Conflict, Controller
from haptera.sdk.controlling import serve_controller
from haptera.wire import control
from haptera.wire.ipc import encode_frame
from tests.api.fake_backend import FakeBackend

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "frames.md"
WAIT_S = 60
Spoken = tuple[str, dict[str, Any]]

controller = Controller("n1-on", settings=dict)


@controller.run
async def keep(cluster: Cluster[dict[str, str]]) -> None:
    watch = cluster.watch(kinds=["node"])
    first = await anext(watch)
    revision = await cluster.write({"node:n1": {"power": "on"}}, if_revision=first.revision)
    assert (await anext(watch)).revision == revision
    assert list(await cluster.read("node:n[1-2]")) == ["node:n1", "node:n2"]
    with pytest.raises(Conflict, match="belongs to site"):
        await cluster.write({"node:n2": {"power": None}})
    await watch.aclose()


def transcript() -> list[Spoken]:
    (block,) = re.findall(r"```text controller\n(.*?)```", PAGE.read_text(), re.DOTALL)
    spoken = re.findall(r"^(daemon|controller): (\{.*\})$", block, re.MULTILINE)
    return [(speaker, json.loads(content)) for speaker, content in spoken]


def a_backend() -> FakeBackend:
    backend = FakeBackend()
    backend.bus = Bus("7-ab", lambda: backend.store)
    nodes = node_id("n1"), node_id("n2")
    backend.write(*(Declare(node, {}, "site") for node in nodes))
    backend.write(SetDesired(nodes[1], "power", "off", "site"))
    backend.bus = Bus("7-ab", lambda: backend.store)
    return backend


async def heard(reader: asyncio.StreamReader) -> dict[str, Any]:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return msgspec.msgpack.decode(await reader.readexactly(size), type=dict[str, Any])


async def test_a_controller_says_what_the_page_says() -> None:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(serve_controller(controller, "n1-on", theirs, {}, float))
        for speaker, content in transcript():
            if speaker == "controller":
                assert await heard(reader) == content
            else:
                writer.write(encode_frame(content))
        writer.close()


class Line:
    """A link that nobody is too fast for."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self.send = send

    def hold(self) -> None:
        raise AssertionError("too fast")

    def go_on(self) -> None:
        pass


def test_a_daemon_answers_what_the_page_says() -> None:
    async def hold() -> list[dict[str, Any]]:
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        serving = Control("n1-on", a_backend(), Line(answers.put_nowait))
        task = asyncio.ensure_future(serving.run())
        heard: list[dict[str, Any]] = []
        async with asyncio.timeout(WAIT_S):
            for speaker, content in transcript()[1:]:
                if speaker == "controller":
                    serving.take(content)
                else:
                    heard.append(await answers.get())
        task.cancel()
        return heard

    told = [content for speaker, content in transcript() if speaker == "daemon"]
    answers = [json.loads(msgspec.json.encode(one)) for one in asyncio.run(hold())]
    assert [as_on_the_page(one, shown) for one, shown in zip(answers, told, strict=True)] == told


def as_on_the_page(answer: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    """The answer, its views without what the page leaves out."""
    pairs = zip(answer.get("entities", []), shown.get("entities", []), strict=True)
    views = [abridged(view, there) for view, there in pairs]
    return {**answer, "entities": views} if "entities" in answer else answer


def abridged(view: Any, shown: Any) -> Any:
    if not isinstance(shown, dict):
        return view
    return {key: abridged(view[key], one) for key, one in shown.items()}


SAID = [*control.Request.__args__, *control.Answer.__args__]


@pytest.mark.parametrize("said", SAID)
def test_the_page_names_all_keys_of_a_frame(said: type[msgspec.Struct]) -> None:
    op = said.__struct_config__.tag
    (row,) = re.findall(rf"^\| `{op}` \|(.*)$", PAGE.read_text(), re.MULTILINE)
    assert [key for key in said.__struct_fields__ if f"`{key}`" not in row] == []
