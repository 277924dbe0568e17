"""Tells the programs of a replica whether they lead, in any language: lines of JSON over a socket.

It lies in the replica's own folder, and answers the processes of its session only. Who asks to
`act` has the lease locked until it says `done`, or hangs up: meanwhile it is not taken back.
"""

import asyncio
import contextlib
import fcntl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.app.lease import LEASE_TIME, epoch_of, opened
from haptera.keeping.home import Home
from haptera.modules.replica.sockets import bound, session_of

SOCKET: Final = "leader.sock"
LINE_BYTES_MAX: Final = 1_024
CALLERS_MAX: Final = 16
LOOK_EVERY_S: Final = 0.02


class LeaderRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`op` is `act` or `done`; the answer has the same `id`."""

    op: str
    id: int


@contextlib.asynccontextmanager
async def leader_socket(home: Home, run_dir: Path, lease_file: Path) -> AsyncIterator[None]:
    """Answer for one replica, as long as this lasts."""
    home.make()
    callers = LeaderCallers(home, run_dir / LEASE_TIME, lease_file)
    with contextlib.closing(bound(home.path, SOCKET)) as door:
        server = await asyncio.start_unix_server(callers.attend, sock=door, limit=LINE_BYTES_MAX)
        try:
            yield
        finally:
            server.close()
            callers.close()


@dataclass(slots=True)
class LeaderCallers:
    """All who called, each with a task of its own."""

    home: Home
    times: Path
    lease_file: Path
    writers: set[asyncio.StreamWriter] = field(default_factory=set)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One caller, to its end; whatever is wrong with what it says ends it."""
        self.writers.add(writer)
        try:
            leader = session_of(self.home, writer)
            if leader is None or len(self.writers) > CALLERS_MAX:
                why = (
                    "this is not a process of the replica"
                    if leader is None
                    else "too many connections"
                )
                _say(writer, op="refused", why=why)
                return
            self.lease_file.parent.mkdir(parents=True, exist_ok=True)
            with opened(self.lease_file) as descriptor:
                one = LeaderCaller(descriptor, leader, self.times, self.closed, reader, writer)
                await one.attend()
        except (OSError, ValueError, RecursionError):
            pass  # it hung up, or speaks another language
        finally:
            self.writers.discard(writer)
            writer.close()

    def close(self) -> None:
        """Hang up on all: on who acts once that is done, for the lease is locked until then."""
        self.closed.set()


@dataclass(slots=True)
class LeaderCaller:
    """One who called, over the lease's file that is open for it alone."""

    descriptor: int
    leader: int
    times: Path
    closed: asyncio.Event
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    acting: bool = False

    async def attend(self) -> None:
        """Tell each change, and answer each line, until it hangs up."""
        line = asyncio.ensure_future(self.reader.readline())
        told: dict[str, Any] | None = None
        try:
            while self.acting or not self.closed.is_set():
                if (standing := _standing(self._epoch())) != told:
                    told = standing
                    _say(self.writer, **standing)
                await self.writer.drain()
                done, _ = await asyncio.wait([line], timeout=LOOK_EVERY_S)
                if done:
                    if not (said := line.result()):
                        return
                    self._answer(msgspec.json.decode(said, type=LeaderRequest))
                    line = asyncio.ensure_future(self.reader.readline())
        finally:
            line.cancel()

    def _epoch(self) -> int | None:
        return epoch_of(self.descriptor, self.leader, self.times)

    def _answer(self, asked: LeaderRequest) -> None:
        match asked.op:
            case "act":
                _say(self.writer, id=asked.id, **self._act())
            case "done":
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
                self.acting = False
                _say(self.writer, op="ended", id=asked.id)
            case _:
                raise ValueError(asked.op)

    def _act(self) -> dict[str, Any]:
        """Lock the lease, then look once more: what is locked is not taken back."""
        if self.acting:
            return {"op": "refused", "why": "it acts already"}
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return {"op": "refused", "why": "the lease is being taken back"}
        if (epoch := self._epoch()) is None:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)
            return {"op": "refused", "why": "this replica does not lead"}
        self.acting = True
        return {"op": "acting", "epoch": epoch}


def _standing(epoch: int | None) -> dict[str, Any]:
    return {"op": "stands_by"} if epoch is None else {"op": "leads", "epoch": epoch}


def _say(writer: asyncio.StreamWriter, **said: object) -> None:
    writer.write(msgspec.json.encode(said) + b"\n")
