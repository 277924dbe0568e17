"""The process that runs one command for somebody elsewhere: what it writes goes out in frames.

Its link leads to the caller. Where that is closed, as when a process on the way was killed, the
command is ended: so it never outlives those who wait for it.
"""

import contextlib
import os
import select
import selectors
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.core.state.limits import S
from haptera.runtime.clock import now_ns
from haptera.runtime.network.one_frame import pack
from haptera.runtime.network.peer_messages import ExecTold

# Each frame holds so much of what the command wrote.
CHUNK_BYTES: Final = 64 * 1024
# All that it may write, to both.
OUTPUT_BYTES_MAX: Final = 256 * 1024 * 1024
# The caller hears at least this often that it still runs.
ALIVE_EVERY_S: Final = 5.0
# From SIGTERM to SIGKILL.
GRACE_S: Final = 5.0
# What its last words have to leave by.
TOLD_WITHIN_S: Final = 5.0
# As shells have it; the last is timeout(1)'s.
NOT_EXECUTABLE: Final = 126
NOT_FOUND: Final = 127
BY_SIGNAL: Final = 128
TIMED_OUT: Final = 124


class KeptCommand(msgspec.Struct, frozen=True):
    """What to run, for how long at most; with all of its environment.

    Where it is a runtime that starts the command elsewhere, that command's number comes to stand in
    `pid_file`; where none does, it was not started.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str]
    within_s: int
    output_bytes_max: int = OUTPUT_BYTES_MAX
    pid_file: str | None = None


def exec_process(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Keep one command: a fork target. The descriptors are its link, and the command's input."""
    link, given = socket.socket(fileno=descriptors[0]), descriptors[1]
    kept = msgspec.convert(arguments, KeptCommand)
    try:
        keep(kept, link, given)
    except OSError:
        return  # The caller is gone, and it has been ended.


def keep(kept: KeptCommand, link: socket.socket, given: int) -> None:
    """Run it to its end, and report that.

    Raises:
        OSError: nobody hears of it any more; it is ended.
    """
    link.settimeout(TOLD_WITHIN_S)
    try:
        process = subprocess.Popen(
            kept.words,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=kept.environment,
            cwd="/",
            start_new_session=True,
        )
    except (FileNotFoundError, NotADirectoryError):
        _tell(link, ExecTold(status=NOT_FOUND, why=f"there is no command {kept.words[0]!r}"))
        return
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        why = f"{kept.words[0]!r} cannot be run: {words}"
        _tell(link, ExecTold(status=NOT_EXECUTABLE, why=why))
        return
    os.close(given)
    try:
        with process:
            _Keeper(kept, link, process).run()
    finally:
        if kept.pid_file is not None:
            Path(kept.pid_file).unlink(missing_ok=True)


class _Keeper:
    """One command that was started."""

    def __init__(
        self, kept: KeptCommand, link: socket.socket, process: subprocess.Popen[bytes]
    ) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._kept = kept
        self._link = link
        self._process = process
        self._pidfd = os.pidfd_open(process.pid)
        self._until_ns = now_ns() + kept.within_s * S
        self._left_bytes = kept.output_bytes_max
        self._poll = selectors.DefaultSelector()
        outlets: tuple[tuple[int, Callable[[bytes], ExecTold]], ...] = (
            (process.stdout.fileno(), lambda data: ExecTold(stdout=data)),
            (process.stderr.fileno(), lambda data: ExecTold(stderr=data)),
        )
        for descriptor, told in outlets:
            os.set_blocking(descriptor, False)
            self._poll.register(descriptor, selectors.EVENT_READ, told)
        self._poll.register(self._pidfd, selectors.EVENT_READ)
        self._poll.register(link, selectors.EVENT_READ)

    def run(self) -> None:
        try:
            last = self._follow()
        except OSError:  # as where a time is over in which nobody takes what it writes
            self._end()
            raise
        finally:
            self._poll.close()
            os.close(self._pidfd)
        self._link.settimeout(TOLD_WITHIN_S)
        _tell(self._link, last)

    def _follow(self) -> ExecTold:
        """Tell what it writes until its end, which is the answer."""
        while True:
            left_s = (self._until_ns - now_ns()) / S
            if left_s <= 0:
                return self._ended_for(f"it ran for {self._kept.within_s} s, its time limit")
            self._link.settimeout(left_s)
            ready = [key for key, _ in self._poll.select(min(left_s, ALIVE_EVERY_S))]
            if not ready:
                _tell(self._link, ExecTold())
            if any(key.fileobj is self._link for key in ready):
                raise ConnectionError("nobody waits for it any more")
            for key in [key for key in ready if key.data is not None]:
                self._pass_on(key)
            if self._left_bytes < 0:
                most = self._kept.output_bytes_max
                return self._ended_for(f"it wrote more than {most} bytes, its output limit")
            if any(key.fd == self._pidfd for key in ready):
                return self._ended()

    def _pass_on(self, outlet: selectors.SelectorKey) -> bool:
        """Tell what one outlet holds now; whether there may be more."""
        try:
            data = os.read(outlet.fd, CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._poll.unregister(outlet.fd)
            return False
        self._left_bytes -= len(data)
        if self._left_bytes >= 0:
            _tell(self._link, outlet.data(data))
        return self._left_bytes >= 0

    def _ended(self) -> ExecTold:
        """It has ended by itself: what it wrote comes first. Others may still hold its outlets."""
        for outlet in [one for one in self._poll.get_map().values() if one.data is not None]:
            while self._pass_on(outlet):
                pass
        status = self._process.wait()
        if status < 0:
            name = _signal_name(-status)
            return ExecTold(status=BY_SIGNAL - status, why=f"it was ended by {name}")
        pid_file = self._kept.pid_file
        if pid_file is not None and not Path(pid_file).exists():
            return ExecTold(status=NOT_FOUND, why="the command could not be started there")
        return ExecTold(status=status)

    def _ended_for(self, why: str) -> ExecTold:
        self._end()
        return ExecTold(status=TIMED_OUT, why=f"it was ended: {why}")

    def _end(self) -> None:
        """End it with its process group: asked first, then killed; not reaped before that."""
        self._send(signal.SIGTERM)
        select.select((self._pidfd,), (), (), GRACE_S)
        self._send(signal.SIGKILL)
        self._process.wait()

    def _send(self, number: signal.Signals) -> None:
        groups = [self._process.pid]
        # Where it is not elsewhere, or not yet, it ends with its runtime.
        with contextlib.suppress(OSError, ValueError):
            groups.insert(0, int(Path(self._kept.pid_file or "").read_text(encoding="ascii")))
        for group in groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, number)


def _tell(link: socket.socket, told: ExecTold) -> None:
    link.sendall(pack(told))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
