"""Runs commands on this node for its parent, each by a keeper, and hands on what those say."""

import asyncio
import contextlib
import os
import pwd
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from haptera.daemon.executing.keeper import KeptCommand
from haptera.kinds.system import SystemRun
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.modules.system.container import RUNTIME
from haptera.modules.system.home import home_of
from haptera.rest.exec import WORDS_BYTES_MAX
from haptera.runtime.network.one_frame import pack
from haptera.runtime.network.peer_messages import ExecAsked, Unable
from haptera.runtime.network.tls_server import Talk
from haptera.runtime.processes.forking import LoopZygote

# Commands at once on one node.
EXECUTED_AT_ONCE_MAX: Final = 16
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TARGET: Final = "haptera.daemon.executing.keeper:exec_process"
_READ_BYTES: Final = 64 * 1024


class Executor:
    """Runs what is asked on the node, or in one of its systems; `known` are its entities."""

    def __init__(
        self, zygote: LoopZygote, run_dir: Path, node: str, known: Callable[[], Iterable[EntityId]]
    ) -> None:
        self._zygote = zygote
        self._run_dir = run_dir.absolute()
        self._node = node
        self._known = known
        self._at_once = 0

    async def execute(self, asked: ExecAsked, talk: Talk) -> None:
        """Run it, and report as it goes; a caller that hangs up ends it."""
        if self._at_once >= EXECUTED_AT_ONCE_MAX:
            most = f"{EXECUTED_AT_ONCE_MAX} commands run on {self._node} already"
            talk.writer.write(pack(Unable(f"{most}: wait until one has ended")))
            return
        self._at_once += 1
        try:
            await self._execute(asked, talk)
        except (HapteraError, OSError) as error:
            talk.writer.write(pack(Unable(str(error))))
        finally:
            self._at_once -= 1

    async def _execute(self, asked: ExecAsked, talk: Talk) -> None:
        kept = self._command(asked)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003  it takes no name
        try:
            with theirs, _content(asked.stdin) as given:
                child = await self._zygote.fork(
                    _TARGET,
                    msgspec.to_builtins(kept),
                    (theirs.fileno(), given),
                    ended=lambda _: None,
                    survives=True,
                )
            os.close(child.pidfd)
            reader, writer = await asyncio.open_unix_connection(sock=ours)
        except BaseException:
            ours.close()
            raise
        try:
            async with asyncio.TaskGroup() as tasks:
                handing_on = tasks.create_task(_hand_on(reader, talk.writer))
                leaving = tasks.create_task(_cancel_when_gone(talk.reader, handing_on))
                handing_on.add_done_callback(lambda _: leaving.cancel())
        finally:
            writer.transport.abort()

    def _command(self, asked: ExecAsked) -> KeptCommand:
        """What is to run.

        Raises:
            HapteraError: there is no such system, or it does not run.
        """
        if sum(len(os.fsencode(word)) + 1 for word in asked.words) > WORDS_BYTES_MAX:
            raise HapteraError(f"the command has more than {WORDS_BYTES_MAX} bytes")
        entity = asked.entity
        if entity.kind == "node" and entity.name == self._node:
            return KeptCommand(asked.words, self._environment(), asked.within_s)
        if entity.kind != "system" or entity not in self._known():
            raise HapteraError(f"{entity} is not known there")
        home = home_of(self._run_dir, entity.name)
        started = home.started()
        if home.run() is not SystemRun.RUNNING or started is None:
            raise HapteraError(f"{entity} does not run")
        pid_file = str(home.path / f"exec-{secrets.token_hex(8)}.pid")
        runtime = (RUNTIME, "--root", str(home.path / "runtime"))
        words = (*runtime, "exec", "--pid-file", pid_file, started.run, *asked.words)
        return KeptCommand(words, self._environment(), asked.within_s, pid_file=pid_file)

    def _environment(self) -> dict[str, str]:
        """As at a login, with nothing of the agent's own."""
        try:
            who = pwd.getpwuid(os.getuid())
            own = {"USER": who.pw_name, "HOME": who.pw_dir}
        except KeyError:
            own = {}
        return {"PATH": PATH, "LANG": "C.UTF-8", "HAPTERA_NODE": self._node, **own}


@contextlib.contextmanager
def _content(stdin: bytes | None) -> Iterator[int]:
    """A descriptor that a command can read this from."""
    descriptor = os.open(os.devnull, os.O_RDONLY) if stdin is None else os.memfd_create("stdin")
    try:
        if stdin is not None:
            os.write(descriptor, stdin)
            os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):  # Nobody hears it any more.
        while data := await reader.read(_READ_BYTES):
            writer.write(data)
            await writer.drain()


async def _cancel_when_gone(reader: asyncio.StreamReader, handing_on: asyncio.Task[None]) -> None:
    with contextlib.suppress(OSError):
        await reader.read(1)
    handing_on.cancel()
