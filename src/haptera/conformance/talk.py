"""One process of the module under check, started as the daemon starts it, and what it says."""

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.conformance.report import SEEN_MAX, CheckFailed, quoted
from haptera.conformance.subject import CheckedModule
from haptera.model.effects import Call, Start
from haptera.model.events import (
    Answered,
    Ended,
    Event,
    Failed,
    LoopBlocked,
    Progressed,
    Ready,
    WatchReported,
)
from haptera.model.parts import API, Manifest
from haptera.runtime.processes.confinement.confinement import Confinement
from haptera.runtime.processes.forking import LoopZygote
from haptera.runtime.processes.module_frames import call_frame, event_of
from haptera.runtime.processes.output import Output
from haptera.runtime.processes.process import END_WITHIN_S, LIMITS, log_of, module_target
from haptera.sdk.failures import TEXT_BYTES_MAX
from haptera.sdk.target import Boot
from haptera.wire.frame import Reject
from haptera.wire.ipc import Frames, encode_frame

Frame = dict[str, Any]
READ_BYTES: Final = 65_536
# For the machine's own slowness: what an answer may take besides what its part says.
SLACK_S: Final = 5.0
# How often it is seen whether all was read.
UNREAD_EACH_S: Final = 0.01
# Reaping takes the zygote a moment.
KILLED_WITHIN_S: Final = 10.0

_SEE_LOG: Final = "fix what ends it: the daemon counts this as a crash"


class ModuleTalk:
    """A conversation with one process; whatever it may not say ends it as `CheckFailed`.

    Answers are kept by the numbers of their calls, readings of watches in `sighted`.
    """

    def __init__(
        self, subject: CheckedModule, name: str, folder: Path, canary: str, known: Manifest | None
    ) -> None:
        self.subject = subject
        self.ready: Ready | None = None
        self.answers: dict[int, Answered | Ended | Failed] = {}
        self.sighted: list[WatchReported] = []
        self.pongs = 0
        self.said_canary: str | None = None
        self._name = name
        self._known = known
        self._folder = folder
        # As a daemon's, it has nothing in it that the module did not write.
        self._run_dir = folder / "run"
        self._canary = canary
        self._due: set[int] = set()
        self._watched: set[int] = set()
        self._breach: str | None = None
        self.blocked: str | None = None
        self._news = asyncio.Event()
        self._status: int | None = None
        self._how = ""
        self._pidfd: int | None = None
        self._numbers = 0

    async def start(self, zygote: LoopZygote) -> None:
        """Start the process; nothing is said yet."""
        self._run_dir.mkdir()
        self._output = Output(self.log)
        self._output.allow(LIMITS.output_bytes_max)
        ours, theirs = socket.socketpair()
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
        target, arguments = module_target(self._name, self.subject.place, LIMITS.memory_bytes_max)
        with theirs:
            forked = zygote.fork(
                target,
                arguments | {"confinement": msgspec.to_builtins(self._confinement())},
                (theirs.fileno(),),
                output=self._output.writing,
                ended=self._exited,
            )
        self._output.close_writing()
        self._pidfd = (await forked).pidfd
        self._listening = asyncio.create_task(self._listen())

    def _confinement(self) -> Confinement:
        """Nothing is hidden here, but it may do no more than it says that it needs."""
        known = self._known
        folder = str(self._run_dir)
        if known is None:
            return Confinement((), folder)
        return Confinement((), folder, needs=known.needs, writes=known.writes)

    @property
    def log(self) -> Path:
        return log_of(self._folder / "log", self._name)

    @property
    def has_ended(self) -> bool:
        return self._status is not None

    async def begin(self) -> Ready:
        """Say `begin`, and hear `ready`."""
        self.send_bytes(self.begin_frame())
        return await self.begun()

    def begin_frame(self) -> bytes:
        return encode_frame(
            {
                "op": "begin",
                "module": self._name,
                "settings": self._settings(),
                "run_dir": str(self._run_dir),
                "api": API,
                # Keys that it does not know are skipped, and no frame is printed whole.
                "check": self._canary,
            }
        )

    async def begun(self) -> Ready:
        """Hear `ready`."""
        await self.until(
            lambda: self.ready is not None, "no `ready` came", "answer `begin` with `ready`"
        )
        assert self.ready is not None
        return self.ready

    def send(self, frame: Frame) -> None:
        self.send_bytes(encode_frame(frame))

    def send_bytes(self, data: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(data)

    async def flush(self) -> None:
        """Have what was sent be on its way."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def read(self) -> None:
        """Wait until it has read all that was sent, for as long as it may take to answer."""
        await self.flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.subject.patience_s):
                # The kernel tells when it is asked, and not by itself.
                while not self._writer.is_closing() and self._unread():  # noqa: ASYNC110
                    await asyncio.sleep(UNREAD_EACH_S)

    def _unread(self) -> bool:
        """Whether the kernel still holds some of what was sent: unix(7), SIOCOUTQ."""
        link = self._writer.get_extra_info("socket")
        held = fcntl.ioctl(link.fileno(), termios.TIOCOUTQ, bytes(4))
        return int.from_bytes(held, sys.byteorder) > 0

    def number(self) -> int:
        """A number for a call."""
        self._numbers += 1
        return self._numbers

    def call(self, call: Call, boot: Boot | None = None) -> int:
        """Send a call, whose answer is due from now on."""
        (self._watched if call.work == "watch" else self._due).add(call.id)
        self.send({**call_frame(call, boot), "check": self._canary})
        return call.id

    def cancel(self, call: int) -> None:
        self.send({"op": "cancel", "id": call})

    def stop(self, call: int) -> None:
        """Say that something else is desired than this step is to bring about."""
        self.send({"op": "stop", "id": call})

    def forget(self, call: int) -> None:
        """Whatever comes for this call from now on is wrong."""
        self._due.discard(call)
        self._watched.discard(call)
        self.answers.pop(call, None)

    async def answer(self, call: int, within_s: float) -> Answered | Ended | Failed:
        """The answer to a call, which is due by then."""
        seen = f"no answer within {within_s:g} s"
        do = "answer each call, by its number, within the time that its part declares"
        try:
            await self.until(lambda: call in self.answers, seen, do, within_s + SLACK_S)
        except CheckFailed:
            # One that hangs altogether is worse than one that does not answer.
            await self.ping()
            raise
        return self.answers[call]

    async def ping(self) -> None:
        """Ask for a sign of life, and get it."""
        due = self.pongs + 1
        self.send({"op": "ping"})
        await self.pong(due)

    async def pong(self, count: int) -> None:
        """So many signs of life, in all."""
        seen = f"no `pong` within {self.subject.patience_s:g} s of a `ping`"
        do = "answer pings at all times: the daemon kills a module that is silent for 30 s"
        await self.until(lambda: self.pongs >= count, seen, do)

    async def until(
        self, holds: Callable[[], bool], seen: str, do: str, within_s: float | None = None
    ) -> None:
        """Wait until this holds.

        Raises:
            CheckFailed: it does not in time, or the module ended, or said what it may not.
        """
        try:
            async with asyncio.timeout(within_s or self.subject.patience_s):
                while not self._judged(holds):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            if self._listening.done():
                raise CheckFailed("it closed its link, and continued to run", _SEE_LOG) from None
            raise CheckFailed(seen, do) from None

    async def ends(self, why: str, do: str, within_s: float = END_WITHIN_S) -> None:
        """Wait until it has ended by itself.

        Raises:
            CheckFailed: it has not, or it was a signal that ended it.
        """
        if not await self._ended(within_s + SLACK_S):
            raise CheckFailed(f"it continued to run for {within_s:g} s after {why}", do)
        # A program that writes to a closed link ends so, unless it asks not to.
        if self._status is not None and self._status < 0 and self._status != -signal.SIGPIPE:
            raise CheckFailed(f"it was {self._how}", "end, and do not crash")

    def hang_up(self) -> None:
        """Close the link."""
        self._writer.close()

    async def close(self) -> None:
        """End the process, and keep what it printed in its log."""
        self.hang_up()
        for within_s, kill in ((END_WITHIN_S, True), (KILLED_WITHIN_S, False)):
            if not await self._ended(within_s) and kill and self._pidfd is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        self._output.close()
        if self._pidfd is not None:
            os.close(self._pidfd)

    async def _ended(self, within_s: float) -> bool:
        """Whether it has ended by then."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not self.has_ended:
                    self._news.clear()
                    await self._news.wait()
        return self.has_ended

    def _settings(self) -> dict[str, Any]:
        """What is given, and something made up for each secret."""
        declared = () if self._known is None else self._known.settings or ()
        secrets = (*self.subject.secrets, *(one.name for one in declared if one.secret))
        return dict.fromkeys(secrets, self._canary) | dict(self.subject.settings)

    def _judged(self, holds: Callable[[], bool]) -> bool:
        """Whether it holds; what came before the end counts, and so does what was wrong in it."""
        if self._breach is not None:
            raise CheckFailed(self._breach, "send only the frames in docs/reference/frames.md")
        if holds():
            return True
        # What it said last is read before its end is believed.
        if self.has_ended and self._listening.done():
            raise CheckFailed(f"it ended: {self._how}", _SEE_LOG)
        return False

    def _exited(self, status: int) -> None:
        self._status = status
        self._how = self._output.how_it_ended(status)[:SEEN_MAX]
        self._news.set()

    async def _listen(self) -> None:
        frames, unasked = Frames(), 0
        while self._breach is None and (data := await self._read()):
            if self._canary.encode() in data:
                self.said_canary = "a frame"
            fed = frames.feed(data)
            if isinstance(fed, Reject):
                self._breach = "it sent a malformed frame"
                break
            for frame in fed:
                unasked += not self._take(frame)
            if unasked > LIMITS.frames_unasked_max:
                self._breach = f"it sent over {LIMITS.frames_unasked_max} unrequested frames"
            self._news.set()
        self._news.set()

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(READ_BYTES)
        except ConnectionError:
            return b""

    def _take(self, frame: Frame) -> bool:
        """Take one frame in; whether it was asked for."""
        if frame.get("op") == "pong":
            self.pongs += 1
            return True
        try:
            event = event_of(Start(self._name if self._known else _claimed(frame)), frame)
        except ValueError as error:
            self._breach = f"{error}: {quoted(frame)}"
            return False
        return self._hear(event, frame)

    def _hear(self, event: Event, frame: Frame) -> bool:
        match event:
            case Ready() if self.ready is None:
                self.ready = event
            case Failed() if len(frame["text"].encode()) > TEXT_BYTES_MAX:
                self._breach = f"the text of a `failed` takes more than {TEXT_BYTES_MAX} bytes"
                return False
            case Answered(call=call) | Ended(call=call) | Failed(call=call) if call in self._due:
                self._due.discard(call)
                self.answers[call] = event
            case Failed(call=call) if call in self._watched:
                self._watched.discard(call)
                self.answers[call] = event
            case Progressed(call=call) if call in self._due:
                return False
            case LoopBlocked():
                self.blocked = event.text
                return False
            case WatchReported(call=call) if call in self._watched:
                self.sighted.append(event)
                return False
            case _:
                self._breach = f"it sent an unrequested frame: {quoted(frame)}"
                return False
        return True


def _claimed(frame: Frame) -> str:
    """The name that it declares: as long as none is known, any will do."""
    manifest = frame.get("manifest")
    return str(manifest.get("name")) if isinstance(manifest, dict) else ""
