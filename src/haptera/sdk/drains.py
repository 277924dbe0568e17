"""Since when a gate drains each node, kept over the module's processes and the machine's boots."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from haptera.model.parts import DRAIN_REST_S, DRAIN_S_MAX


class Drains:
    """One empty file a node, made when the first hold began to wait: its time of change says when.

    Another one says when a node was let go of that was drained for too long. Both are wall time: a
    drain takes days, and must outlast a boot. Where the disk does not take the file, the drain
    seems to begin with each process.
    """

    def __init__(self, run_dir: Path, wall_s: Callable[[], float]) -> None:
        self._draining = run_dir / "draining"
        self._undrained = run_dir / "undrained"
        self._wall_s = wall_s

    def lasts_ms(self, node: str) -> int:
        """For how long this node has been drained; from now on, where it was not."""
        if self.rests(node):
            return DRAIN_S_MAX * 1_000
        path = self._draining / node
        with contextlib.suppress(OSError):
            self._draining.mkdir(exist_ok=True)
            if not path.exists():
                path.touch()
            return max(0, round(self._age_s(path) * 1_000))
        return 0

    def rests(self, node: str) -> bool:
        """Whether it was drained for too long a while ago, and is to be left alone."""
        with contextlib.suppress(OSError):
            return 0 <= self._age_s(self._undrained / node) < DRAIN_REST_S
        return False

    def held(self, node: str) -> None:
        """All has ended there."""
        (self._draining / node).unlink(missing_ok=True)

    def released(self, node: str) -> None:
        """Nobody wants it drained any more, or it took too long."""
        path = self._draining / node
        with contextlib.suppress(OSError):
            if self._age_s(path) >= DRAIN_S_MAX:
                self._undrained.mkdir(exist_ok=True)
                (self._undrained / node).touch()
        path.unlink(missing_ok=True)

    def _age_s(self, path: Path) -> float:
        return self._wall_s() - path.stat().st_mtime
