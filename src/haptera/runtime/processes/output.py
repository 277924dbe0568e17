"""The output of a module: read from a pipe at a limited rate, its end kept in files."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Final

# Of each of the two files: the present one, and the one before it.
LOG_BYTES_MAX: Final = 64 << 10
READ_BYTES: Final = 65_536
LAST_WORDS_BYTES: Final = 500


class Output:
    """One process's output, on its way to a log that may have other writers too.

    Raises:
        OSError: the log cannot be written.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        log.open("ab").close()
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._said = b""
        self._allowed = 0
        self._loop = asyncio.get_running_loop()

    def allow(self, size_bytes: int) -> None:
        """Read so much from now on; a process that prints more waits until it is allowed more."""
        self._allowed = size_bytes
        if self._reading >= 0:
            self._loop.add_reader(self._reading, self._read)

    def close_writing(self) -> None:
        """The process has its own descriptor of the pipe."""
        os.close(self.writing)

    def how_it_ended(self, status: int) -> str:
        """How a process that is gone did, in its last words if it had any."""
        self.close()
        if status < 0:
            return f"killed by {signal.Signals(-status).name}"
        said = self.last_line() if status > 0 else ""
        return f"status {status}: {said}" if said else f"status {status}"

    def last_line(self) -> str:
        """What it printed last, nothing where it printed nothing."""
        lines = self._said.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        """Keep what it said last: what is in the pipe, and no more of what others may say there."""
        if self._reading >= 0:
            self._keep(self._received())
            self._hang_up()

    def _read(self) -> None:
        data = self._received()
        if not data:
            self._hang_up()
            return
        self._keep(data)
        self._allowed -= len(data)
        if self._allowed <= 0:
            self._loop.remove_reader(self._reading)

    def _received(self) -> bytes:
        try:
            return os.read(self._reading, READ_BYTES)
        except BlockingIOError:
            return b""

    def _hang_up(self) -> None:
        self._loop.remove_reader(self._reading)
        os.close(self._reading)
        self._reading = -1

    def _keep(self, data: bytes) -> None:
        self._said = (self._said + data)[-LAST_WORDS_BYTES:]
        # A disk that is full costs what was printed, and nothing else.
        with contextlib.suppress(OSError), self._log.open("ab") as file:
            if file.tell() + len(data) > LOG_BYTES_MAX:
                self._log.replace(self._log.with_suffix(".log.1"))
                self._log.write_bytes(data)
            else:
                file.write(data)
