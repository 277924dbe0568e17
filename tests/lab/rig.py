"""What tests of the lab share: a chassis on its own, plain HTTP, waiting for conditions."""

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from haptera.lab.chassis import ChassisConfig
from haptera.lab.init import InitConfig
from haptera.lab.orders import BmcFaults
from haptera.lab.tree import descendants, kill
from haptera.runtime import clock
from tests.kills import processes

ROOT = Path(__file__).parents[2]
WAIT_S_MAX = 60
Value = TypeVar("Value")

# What a zygote does for a chassis, by exec, so that each test has a tree of its own.
START = """
import json, sys
from haptera.lab import tree
from haptera.lab.chassis import chassis_process
chassis_process(json.loads(sys.argv[1]), [int(sys.argv[2])])
"""


def wait_for(find: Callable[[], Value | None]) -> Value:
    """What `find` finds, once it is something."""
    return processes.wait_for("success", find, WAIT_S_MAX)


async def until(find: Callable[[], Value | None], within_s: float = WAIT_S_MAX) -> Value:
    """What `find` finds, once it is something that tells nobody when it comes."""
    began = clock.now_ns()
    async with asyncio.timeout(within_s):
        while not (found := find()):
            # What answers must have time for more than these questions.
            await asyncio.sleep(max(0.005, (clock.now_ns() - began) / 1e9))
            began = clock.now_ns()
    return found


def files_below(folder: Path) -> Iterator[Path]:
    """All files of a folder in which others come and go meanwhile: `rglob` raises there."""
    for at, _, names in os.walk(folder):
        yield from (Path(at, name) for name in names)


def read_pid(path: Path) -> int | None:
    return int(path.read_text()) if path.exists() else None


def command(pid: int) -> str:
    """The name of a process; nothing of one that has ended since it was found."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def kill_if_there(pid: int) -> None:
    """Kill -9 what may have ended since it was found."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@dataclass
class Node:
    """One node, over its BMC and its files."""

    directory: Path
    commands: Path
    address: tuple[str, int]

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection(*self.address, timeout=WAIT_S_MAX)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, data)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def raw(self, data: bytes) -> bytes:
        """What comes back for these bytes, to the end of the connection."""
        with socket.create_connection(self.address, timeout=WAIT_S_MAX) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while chunk := connection.recv(1 << 16):
                answer += chunk
            return answer

    def switch(self, power: str, command: str, boot: dict[str, str] | None = None) -> None:
        """Command this, and wait until it is so."""
        order = {"power": power, "command": command} | ({} if boot is None else {"boot": boot})
        assert self.ask("POST", "/power", order) == (202, {"command": command})
        wait_for(lambda: self.power == power or None)

    @property
    def power(self) -> Any:
        return self.ask("GET", "/power")[1]["power"]

    def power_if_answered(self) -> Any:
        """None where the BMC died with our connection in its hands."""
        try:
            return self.power
        except (ConnectionError, http.client.HTTPException):
            return None

    @property
    def record(self) -> list[dict[str, Any]]:
        """All commands and effects, in order, without times and reads."""
        rows = [json.loads(line) for line in self.commands.read_text().splitlines()]
        for row in rows:
            assert row.pop("at_ns") > 0
        return [row for row in rows if "read" not in row]

    @property
    def run(self) -> Path:
        return self.directory / "run"

    @property
    def agent(self) -> int:
        """The pid of an agent that has begun."""
        pid = wait_for(lambda: read_pid(self.directory / "agent.pid"))
        wait_for(lambda: (self.run / f"seen-{pid}").exists() or None)
        return pid

    def agent_other_than(self, pid: int) -> int:
        return wait_for(lambda: other if (other := self.agent) != pid else None)


@dataclass
class Rig(Node):
    """One node's chassis, without a lab around it."""

    process: subprocess.Popen[bytes]

    def kill_bmc(self) -> None:
        for one in descendants([self.process.pid]):
            if command(one.pid) == "bmc n1":
                kill(one)


def end(process: subprocess.Popen[bytes]) -> None:
    """Stop the chassis, so that it starts nothing any more; kill all below it, then itself."""
    process.send_signal(signal.SIGSTOP)
    while living := [one for one in descendants([process.pid]) if not one.dead]:
        for one in living:
            kill(one)
    process.kill()
    process.wait()


@contextmanager
def chassis(directory: Path, **faults: Any) -> Iterator[Rig]:
    """A node that is off."""
    config = ChassisConfig(
        name="n1",
        commands=str(directory / "commands.jsonl"),
        faults=BmcFaults(**({"delay_ms": 0} | faults)),
        log=str(directory / "lab.log"),
        init=InitConfig(
            name="n1",
            target="tests.lab.standin:agent",
            arguments={"directory": str(directory / "run")},
            log=str(directory / "agent.log"),
            pid_file=str(directory / "agent.pid"),
            init_pid_file=str(directory / "init.pid"),
            scratch=str(directory / "run"),
        ),
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                START,
                msgspec.json.encode(config).decode(),
                str(listener.fileno()),
            ],
            pass_fds=[listener.fileno()],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        try:
            yield Rig(directory, directory / "commands.jsonl", listener.getsockname(), process)
        finally:
            end(process)
