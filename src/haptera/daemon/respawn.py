"""A daemon that is back at once when it dies, and says so where it dies again and again."""

import asyncio
import logging
import os
import select
from pathlib import Path
from typing import Final

from haptera.runtime.clock import now_ns
from haptera.runtime.identity.private import write_private
from haptera.runtime.log import log_to_stderr
from haptera.runtime.processes.zygote import die_with

# One that ran for so long is followed at once: a kill is no reason to trust the next one less.
STEADY_S: Final = 10.0
# How long one stays down that ended sooner; constant, as what it waits for may come at any time.
AGAIN_S: Final = 1.0
# One that ends sooner has done nothing for anybody; after so many of them in a row the next one
# keeps quiet at first: so long that it counts as lost, and twice as long each time.
SHORT_S: Final = 5.0
SHORT_MAX: Final = 5
QUIET_H: Final = 12
QUIET_S_MAX: Final = 600.0
SHORT_LIVES: Final = "short-lives"

_log = logging.getLogger(__name__)


class Lives:
    """How many of a daemon's processes in a row had short lives, by a file that outlives them."""

    def __init__(self, directory: Path) -> None:
        self._place = directory / SHORT_LIVES
        self._quiet_s = 0.0
        self.short = self._place.stat().st_size if self._place.exists() else 0
        try:
            write_private(self._place, bytes(self.short + 1))
        except OSError as error:
            _log.warning("%s is not counted: %s", self._place, error.strerror)
        if self.short >= SHORT_MAX:
            text = "the last %d processes ended within %g s each: see what is logged before this"
            _log.error(text, self.short, SHORT_S)

    def be_quiet(self, hello_s: float) -> float:
        """For how long it is to keep quiet from now on, so that others do not take it for well.

        They take it for lost once they have not heard it for a few `hello_s`.
        """
        if self.short >= SHORT_MAX:
            doubled: float = 2.0 ** min(self.short - SHORT_MAX, SHORT_MAX)
            self._quiet_s = min(QUIET_H * hello_s * doubled, QUIET_S_MAX)
        return self._quiet_s

    async def run(self) -> None:
        """Count no more once this process has lived for longer, and not in quiet."""
        await asyncio.sleep(self._quiet_s + SHORT_S)
        self._place.unlink(missing_ok=True)


def respawn() -> None:
    """Go on in a forked process, and in another one whenever that has ended: returns in these only.

    The one that forks them may be the first process of a machine: it reaps orphans. Call it before
    there are threads or a loop.
    """
    log_to_stderr()
    parent, begun = os.getpid(), now_ns()
    while (child := os.fork()) != 0:
        _log.warning("the agent ended with %d", _ended(child))
        select.select((), (), (), rest_s((now_ns() - begun) / 1e9))
        begun = now_ns()
    die_with(parent)


def rest_s(lived_s: float) -> float:
    """How long to wait after an agent that lived for so long.

    >>> rest_s(3_600.0), rest_s(0.2)
    (0.0, 1.0)
    """
    return 0.0 if lived_s >= STEADY_S else AGAIN_S


def _ended(child: int) -> int:
    """Its status, negative for a signal, once it has one; what else ends meanwhile is reaped."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)
