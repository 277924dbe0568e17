"""Since when a gate drains each node, kept over the module's processes and the machine's boots."""

import contextlib
from collections.abc import Callable
from pathlib import Path


class Drains:
    """One empty file a node, made when the first hold began to wait: its time of change says when.

    That is wall time: a drain takes days, and must outlast a boot. Where the disk does not take
    the file, the drain seems to begin with each process.
    """

    def __init__(self, folder: Path, wall_s: Callable[[], float]) -> None:
        self._folder = folder
        self._wall_s = wall_s

    def lasts_ms(self, node: str) -> int:
        """For how long this node has been drained; from now on, where it was not."""
        path = self._folder / node
        with contextlib.suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            if not path.exists():
                path.touch()
            return max(0, round((self._wall_s() - path.stat().st_mtime) * 1_000))
        return 0

    def over(self, node: str) -> None:
        """It is held, or nobody wants that any more."""
        (self._folder / node).unlink(missing_ok=True)
