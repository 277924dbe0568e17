"""A daemon that is back at once when it dies: a copy of a process that has imported all of it."""

import logging
import os
import select
from typing import Final

from haptera.runtime.clock import now_ns
from haptera.runtime.log import log_to_stderr
from haptera.runtime.processes.zygote import die_with

# One that ran for so long is followed at once: a kill is no reason to trust the next one less.
STEADY_S: Final = 10.0
# How long one stays down that ended sooner; constant, as what it waits for may come at any time.
AGAIN_S: Final = 1.0

_log = logging.getLogger(__name__)


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
