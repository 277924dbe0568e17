"""The processes of a job, found by the mark that each has in its environment.

Its keeper has all of them below it; this is for when the keeper was killed, and for TERM, which
those are to hear that left the job's session, too. One that cleared its environment gets no TERM.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

LOOK_AGAIN_S: Final = 0.05


def send(marks: Mapping[str, str], number: signal.Signals, spare: int | None = None) -> bool:
    """Signal all processes that have these in their environment; whether there were any."""
    found = False
    for pidfd in _bearers(marks, spare):
        found = True
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, number)
    return found


async def end(marks: Mapping[str, str]) -> None:
    """Kill all that have these in their environment, for as long as the kernel takes."""
    while send(marks, signal.SIGKILL):  # noqa: ASYNC110  nobody tells of their end
        await asyncio.sleep(LOOK_AGAIN_S)


def _bearers(marks: Mapping[str, str], spare: int | None) -> Iterator[int]:
    """A pidfd of each, while it is dealt with."""
    marked = {f"{name}={value}".encode() for name, value in marks.items()}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == spare:
            continue
        try:
            pidfd = os.pidfd_open(int(name))
        except OSError:  # gone, or a thread
            continue
        try:
            # Read once it cannot be another any more: dead ones have no environment.
            environment = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
            if marked.issubset(environment):
                yield pidfd
        except OSError:
            continue  # gone, or another user's
        finally:
            os.close(pidfd)
