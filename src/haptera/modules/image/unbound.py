"""Room for the tools that a module starts: its own process is bounded in memory."""

import ctypes
import resource
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_libc: Final = ctypes.CDLL(None)


def unbound(file_bytes_max: int | None = None) -> None:
    """Between fork and exec: take the bound away again, as far as the machine itself has none.

    `file_bytes_max` is how large a file may become that the tool writes.
    """
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    if file_bytes_max is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes_max, file_bytes_max))


def tied(file_bytes_max: int | None = None) -> None:
    """As `unbound`; and the tool is killed where whoever started it is."""
    unbound(file_bytes_max)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
