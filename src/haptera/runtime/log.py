"""A daemon's log: to standard error, limited in rate and length."""

import contextlib
import fcntl
import logging
import os
import shutil
import stat
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final, TextIO

from haptera.runtime.clock import now_ns

# Entries of one sort in one period, and of all; those beyond are counted, not written.
ALIKE_MAX: Final = 20
ALL_MAX: Final = 400
PERIOD_NS: Final = 10_000_000_000
# So many sorts are distinguished.
SORTS_MAX: Final = 512
# At this size a file that is appended to becomes its own `.1`, and begins anew.
LOG_BYTES_MAX: Final = 16 << 20


def log_to_stderr() -> None:
    """One line an entry: time for people, level, where from, text."""
    handler = BoundedHandler(sys.stderr)
    handler.addFilter(Sparing())
    logging.basicConfig(
        handlers=[handler],
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        force=True,
    )


class Sparing(logging.Filter):
    """Lets so many entries of a sort pass in a period, and of all sorts.

    Entries of one sort come from one place in the code. The first one after a flood says how many
    were left out.
    """

    def __init__(self, now: Callable[[], int] = now_ns) -> None:
        super().__init__()
        self._now = now
        self._sorts: OrderedDict[tuple[str, int], _Sort] = OrderedDict()
        self._all = _Sort(ALL_MAX)

    def filter(self, record: logging.LogRecord) -> bool:
        now, key = self._now(), (record.pathname, record.lineno)
        sort = self._sorts.setdefault(key, _Sort(ALIKE_MAX))
        self._sorts.move_to_end(key)
        if len(self._sorts) > SORTS_MAX:
            self._sorts.popitem(last=False)
        if not sort.takes(now):
            return False
        if not self._all.takes(now):
            sort.left_out += 1
            return False
        if sort.left_out:
            more = sort.left_out
            record.msg, record.args = f"{record.getMessage()} ({more} more were left out)", ()
            sort.left_out = 0
        return True


class BoundedHandler(logging.StreamHandler[TextIO]):
    """Writes to a stream; a file that is appended to grows to a size and no further."""

    def __init__(self, stream: TextIO, size_bytes_max: int = LOG_BYTES_MAX) -> None:
        super().__init__(stream)
        self._size_bytes_max = size_bytes_max

    def emit(self, record: logging.LogRecord) -> None:
        # A disk that is full costs what was to be written, and nothing else.
        with contextlib.suppress(OSError, ValueError):
            self._make_room(self.stream.fileno())
        super().emit(record)

    def _make_room(self, descriptor: int) -> None:
        told = os.fstat(descriptor)
        if not stat.S_ISREG(told.st_mode) or told.st_size < self._size_bytes_max:
            return
        # Without it, the next writer would leave a hole of this size.
        if not fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND:
            return
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        # Not renamed: other processes have it open, and write on.
        shutil.copyfile(path, path.with_name(f"{path.name}.1"))
        os.ftruncate(descriptor, 0)


class _Sort:
    """How many entries there were in this period, and how many were left out since the last one."""

    __slots__ = ("_begun_at", "_count", "_most", "left_out")

    def __init__(self, most: int) -> None:
        self._most = most
        self._begun_at = -PERIOD_NS
        self._count = 0
        self.left_out = 0

    def takes(self, now: int) -> bool:
        if now - self._begun_at >= PERIOD_NS:
            self._begun_at, self._count = now, 0
        self._count += 1
        if self._count <= self._most:
            return True
        self.left_out += 1
        return False
