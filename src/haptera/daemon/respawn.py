"""A daemon that is back at once when it dies: a copy of a process that has imported all of it."""

import logging
import os
import select
from typing import Final

from haptera.runtime.log import log_to_stderr
from haptera.runtime.processes.zygote import die_with

# How long a dead process stays down; constant, as a kill is no reason to trust it less.
AGAIN_S: Final = 1.0

_log = logging.getLogger(__name__)


def respawn() -> None:
    """Go on in a forked process, and in another one whenever that has ended: returns in these only.

    The one that forks them may be the first process of a machine: it reaps orphans. Call it before
    there are threads or a loop.
    """
    log_to_stderr()
    parent = os.getpid()
    while (child := os.fork()) != 0:
        _log.warning("the agent ended with %d", _ended(child))
        select.select((), (), (), AGAIN_S)
    die_with(parent)


def _ended(child: int) -> int:
    """Its status, negative for a signal, once it has one; what else ends meanwhile is reaped."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)
