"""A parent's and a node's side of the queue as processes of their own, on a Unix socket.

A node's words are those it has in life; a driver asks for what `drive` has.
"""

import asyncio
import contextlib
import json
import os
import pwd
from collections import Counter
from pathlib import Path
from typing import Any

from haptera.daemon.queue.agent_side import AgentQueue
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.keeping.gate import JobsGate
from haptera.model.changes import Desired
from haptera.model.entity import node_id
from haptera.queue.entry import Submission
from haptera.queue.job import JobSpec, Size
from haptera.queue.work import WorkAsked
from haptera.runtime import clock
from haptera.runtime.network.one_frame import pack
from haptera.runtime.network.peer_messages import Answer, Request, Unable, hear_answer, hear_request
from haptera.runtime.store.store import STATE_FILE, Store

ME = pwd.getpwuid(os.geteuid()).pw_name
SOCKET = "socket"
DRIVER = "driver"
# Of a node that takes four jobs at a time.
NODE = {"cpus": "4", "memory_mb": "4096"}


class Nodes:
    """Nodes that are alike; what is desired of all of them is in a file, as durable as a store."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def nodes(self) -> list[str]:
        return ["n1"]

    def attributes_of(self, _node: str) -> dict[str, str]:
        return NODE

    def desired_of(self, _node: str) -> dict[str, Desired]:
        held = json.loads(self._file.read_text()) if self._file.exists() else {}
        return {name: Desired(value, "user:eve") for name, value in held.items()}

    def work_of(self, _node: str) -> None:
        """Nobody but the queue knows it here."""

    def desire(self, wish: dict[str, str | int]) -> None:
        self._file.write_text(json.dumps(wish))


async def parent(directory: Path) -> None:
    store = Store.open(directory / STATE_FILE, deliver=lambda _: None, wall_s=clock.wall_s)
    nodes = Nodes(directory / "desired")
    jobs = ParentQueue(store, nodes, lambda done: done())

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError):
            caller = (await reader.readline()).decode().strip()
            if caller == DRIVER:
                told = await drive(jobs, nodes, (await reader.readline()).decode().split())
                writer.write(json.dumps(told).encode() + b"\n")
            else:
                request = await hear_request(reader)
                assert isinstance(request, WorkAsked), request
                writer.write(pack(await jobs.ask_of_node(caller, request)))
            await writer.drain()

    place = directory / SOCKET
    place.unlink(missing_ok=True)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(jobs.run())
        server = await asyncio.start_unix_server(talk, place)
        tasks.create_task(server.serve_forever())


async def drive(jobs: ParentQueue, nodes: Nodes, words: list[str]) -> Any:
    match words:
        case ["submit", key, count, *command]:
            # It writes among the test's own files.
            spec = JobSpec(tuple(command), Size(1, 512), user=ME)
            one = Submission(owner="eve", name="it", spec=spec, count=int(count), key=key)
            return len(await jobs.submit(one))
        case ["work", name, work, *within_s]:
            wish: dict[str, str | int] = {"work": work, "work_why": "a disk"}
            if within_s:
                wish["work_until"] = int(clock.wall_s() + float(within_s[0]))
            nodes.desire(wish)
            jobs.heed([node_id(name)])
            return jobs.queue.duty(name)
        case ["duties"]:
            return {one.name: jobs.queue.duty(one.name) for one in jobs.holders()}
        case ["asked", name]:
            holder = jobs.queue.holders.get(name)
            return None if holder is None or holder.asked[1] < 0 else holder.asked[1]
        case ["states"]:
            return Counter(one.state for one in jobs.queue.jobs.values())
        case _:
            raise AssertionError(words)


async def node(directory: Path, name: str) -> None:
    place = directory / name
    JobsGate(place).release()

    async def ask(_peer: str, request: Request, within_s: float) -> Answer:
        try:
            async with asyncio.timeout(within_s):
                reader, writer = await asyncio.open_unix_connection(directory / SOCKET)
                with contextlib.closing(writer):
                    writer.write(f"{name}\n".encode() + pack(request))
                    return await hear_answer(reader) or Unable("hung up")
        except OSError as error:  # a time-out too
            return Unable(str(error))

    await AgentQueue(ask, lambda: True, place, name).run()


def serve(directory: Path, name: str) -> None:
    """Be the parent, or this node; what it says goes to a log of its own."""
    with (directory / f"{name}.log").open("ab") as log:
        for descriptor in (1, 2):
            os.dup2(log.fileno(), descriptor)
    asyncio.run(parent(directory) if name == "parent" else node(directory, name))
