"""The first acts of a forked process: it takes its name, and keeps within its limits."""

import resource
import sys
from pathlib import Path
from typing import Final

COMM_BYTES_MAX: Final = 15


def confine(name: str, memory_bytes_max: int) -> None:
    """Be known by this name, bounded, and heard to the last line."""
    Path("/proc/self/comm").write_bytes(name.encode()[:COMM_BYTES_MAX])
    _bound(resource.RLIMIT_AS, memory_bytes_max)
    _bound(resource.RLIMIT_CORE, 0)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is a real file


def _bound(kind: int, most: int) -> None:
    """Lower a limit, for this process; what it starts and leaves behind may raise it again."""
    hard = resource.getrlimit(kind)[1]
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (soft, hard))
