"""Asking a zygote for processes: `ZygoteClient` waits for its answers, `LoopZygote` does not."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from haptera.runtime.processes.zygote import (
    PACKET_BYTES_MAX,
    Fork,
    Forked,
    Notice,
    ProcessEnded,
    Unforked,
    be_zygote,
    close_all,
    close_others,
    receive,
)

# What a zygote imports before it forks modules: none of these, for a new process imports it anew.
PRELOAD: Final = ("haptera.runtime.processes.fork_targets",)
# A new one imports all that it is to preload first, which takes a busy machine its time.
ANSWER_WITHIN_S: Final = 60

_encoder: Final = msgspec.msgpack.Encoder()
_notices: Final = msgspec.msgpack.Decoder(Notice)


class Child(NamedTuple):
    """A forked process; its pidfd is the caller's to close."""

    pid: int
    pidfd: int


def exec_zygote(preload: Collection[str] = PRELOAD) -> "ZygoteClient":
    """Start a zygote as a new program; it dies with the calling thread."""
    ours, theirs = _socket_pair()
    command = [sys.executable, "-P", "-m", "haptera.runtime.processes.zygote", "3", *preload]
    pid = os.posix_spawn(
        sys.executable,
        command,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), 3),
        ],
        setsid=True,
    )
    theirs.close()
    return ZygoteClient(ours, pid)


def fork_zygote(preload: Collection[str] = PRELOAD) -> "ZygoteClient":
    """Start a zygote as a copy of this process, before that has threads, a loop or secrets."""
    ours, theirs = _socket_pair()
    starter = os.getpid()
    pid = os.fork()
    if pid == 0:
        _be_copy(theirs.detach(), preload, starter)
    theirs.close()
    return ZygoteClient(ours, pid)


def _be_copy(control: int, preload: Collection[str], starter: int) -> NoReturn:
    try:
        os.setsid()
        close_others([control])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        be_zygote(control, preload, starter=starter)
    finally:
        # Whatever went wrong: never into the frames that were copied.
        os._exit(1)


class ZygoteClient:
    """A zygote, for a process that may wait for it; `fileno` is readable when one ended."""

    def __init__(self, control: socket.socket, pid: int | None = None) -> None:
        self._control = control
        self._pid = pid
        self._next_id = 0
        self._ended: deque[ProcessEnded] = deque()
        control.settimeout(ANSWER_WITHIN_S)

    def fileno(self) -> int:
        return self._control.fileno()

    def fork(
        self,
        target: str,
        arguments: Mapping[str, Any],
        descriptors: Collection[int] = (),
        *,
        output: int | None = None,
        survives: bool = False,
    ) -> Child:
        """Fork a process that runs target(arguments, descriptors); see `Fork`.

        Raises:
            OSError: the zygote is gone, does not answer, or cannot fork.
        """
        request = self.ask_fork(target, arguments, descriptors, output=output, survives=survives)
        forked, (pidfd,) = self._answer(request)
        assert isinstance(forked, Forked)
        return Child(forked.pid, pidfd)

    def ended(self) -> list[ProcessEnded]:
        """Which processes ended since this was last asked; does not wait.

        Raises:
            ConnectionError: the zygote is gone.
        """
        while (arrived := self.arrived()) is not None:
            notice, descriptors = arrived
            close_all(descriptors)
            if isinstance(notice, ProcessEnded):
                self._ended.append(notice)
        ended = list(self._ended)
        self._ended.clear()
        return ended

    def close(self) -> None:
        """Let go of the zygote; the one that started it ends it, and all that it forked."""
        self._control.close()
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
            os.waitpid(self._pid, 0)
            self._pid = None

    def ask_fork(
        self,
        target: str,
        arguments: Mapping[str, Any],
        descriptors: Collection[int] = (),
        *,
        output: int | None = None,
        survives: bool = False,
    ) -> int:
        """Send the request for `fork` and return its id, without waiting for the answer."""
        self._next_id += 1
        request = Fork(self._next_id, target, dict(arguments), output is not None, survives)
        packet = _encoder.encode(request)
        if len(packet) > PACKET_BYTES_MAX:
            raise ValueError(f"arguments of {len(packet)} bytes; at most {PACKET_BYTES_MAX} go")
        sent = [*descriptors] if output is None else [*descriptors, output]
        socket.send_fds(self._control, [packet], sent)
        return self._next_id

    def arrived(self) -> tuple[Notice, list[int]] | None:
        """The next notice, if there is one by now.

        Raises:
            ConnectionError: the zygote is gone.
        """
        self._control.settimeout(0)
        try:
            packet, descriptors = receive(self._control)
        except BlockingIOError:
            return None
        finally:
            self._control.settimeout(ANSWER_WITHIN_S)
        return _notices.decode(packet), descriptors

    def _answer(self, request: int) -> tuple[Notice, list[int]]:
        while True:
            packet, descriptors = receive(self._control)
            match notice := _notices.decode(packet):
                case ProcessEnded():
                    self._ended.append(notice)
                case Unforked(id=id) if id == request:
                    raise OSError(notice.text)
                case Forked(id=id) if id == request:
                    return notice, descriptors
                case _:
                    close_all(descriptors)  # of a request that was given up


class LoopZygote:
    """A zygote, for a process with an event loop: started when first needed, and again if it dies.

    `start` gives a client of a new one, and raises OSError where there can be none.
    """

    def __init__(self, start: Callable[[], ZygoteClient]) -> None:
        self._start = start
        self._client: ZygoteClient | None = None
        self._asked: dict[int, tuple[asyncio.Future[Child], Callable[[int], None]]] = {}
        self._children: dict[int, Callable[[int], None]] = {}

    def fork(
        self,
        target: str,
        arguments: Mapping[str, Any],
        descriptors: Collection[int] = (),
        *,
        output: int | None = None,
        ended: Callable[[int], None],
        survives: bool = False,
    ) -> asyncio.Future[Child]:
        """Ask for a process, at once; `ended` is called with its status, once it ran and ended.

        The descriptors may be closed when this returns.
        """
        future: asyncio.Future[Child] = asyncio.get_running_loop().create_future()
        try:
            client = self._running()
            request = client.ask_fork(
                target, arguments, descriptors, output=output, survives=survives
            )
        except OSError as error:
            future.set_exception(error)
        else:
            self._asked[request] = (future, ended)
        return future

    def close(self) -> None:
        """End the zygote with all that it forked; nobody is informed."""
        if self._client is not None:
            asyncio.get_running_loop().remove_reader(self._client.fileno())
            self._client.close()
            self._client = None

    def _running(self) -> ZygoteClient:
        if self._client is None:
            self._client = self._start()
            asyncio.get_running_loop().add_reader(self._client.fileno(), self._hear, self._client)
        return self._client

    def _hear(self, client: ZygoteClient) -> None:
        try:
            while (arrived := client.arrived()) is not None:
                self._take(*arrived)
        except ConnectionError:
            self._lose()

    def _take(self, notice: Notice, descriptors: list[int]) -> None:
        match notice:
            case Forked(id=request, pid=pid):
                future, self._children[pid] = self._asked.pop(request)
                child = Child(pid, descriptors[0])
                if future.cancelled():
                    close_all(descriptors)
                else:
                    future.set_result(child)
            case Unforked(id=request, text=text):
                future, _ = self._asked.pop(request)
                with contextlib.suppress(asyncio.InvalidStateError):
                    future.set_exception(OSError(text))
            case ProcessEnded(pid=pid, status=status):
                self._children.pop(pid)(status)

    def _lose(self) -> None:
        """The zygote died, and so did all that it forked."""
        self.close()
        asked, self._asked = self._asked, {}
        children, self._children = self._children, {}
        for future, _ in asked.values():
            if not future.done():
                future.set_exception(ConnectionError("the zygote died"))
        for ended in children.values():
            ended(-signal.SIGKILL)


def _socket_pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
