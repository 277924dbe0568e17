"""The kernel's log, counted by patterns; and heartbeats of applications, by their files."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from haptera.modules.kernel_tree import KernelTree
from haptera.sdk import HapteraError, Measured, Reading

events = Reading("node", "log.events", items_max=32, low=0)
# What it says last: a file's time. A rule says `unchanged 5m` of it, so no clock is needed here.
beat = Reading("node", "heartbeat.at", unit="s", items_max=32, low=0)

KMSG: Final = "dev/kmsg"
# A record is no longer (Documentation/ABI/testing/dev-kmsg), and no log is read longer than this.
RECORD_BYTES_MAX: Final = 8_192
LOG_BYTES_MAX: Final = 16 << 20
PATTERNS_MAX: Final = 32
# Level and facility, sequence number, microseconds, flags; then the message.
_RECORD: Final = re.compile(r"\d{1,4},(\d{1,18}),\d{1,18},[^;]*;(.*)")

PATTERNS: Final[Mapping[str, str]] = {
    "xid": r"NVRM: Xid",
    "mce": r"mce: .*(?:Hardware Error|Machine check events logged)",
    "hung_task": r"INFO: task .* blocked for more than \d+ seconds",
    # Not of a cgroup: that is a job that met its own limit.
    "oom": r"^Out of memory: Killed process",
    "lockup": r"(?:soft|hard) lockup|LOCKUP",
    "io_error": r"I/O error, dev \w+",
    "filesystem": r"EXT4-fs error|XFS .*(?:Corruption|Internal error)|BTRFS.*error",
}


class KernelLog:
    """A cursor in a log, with the counts up to it: at first of all that is still in it."""

    def __init__(self) -> None:
        self._last = -1
        self._counts: Counter[str] = Counter()

    def read(self, tree: KernelTree, patterns: Mapping[str, re.Pattern[str]]) -> Measured:
        """The counts of all patterns; none where the log cannot be read."""
        try:
            descriptor = os.open(tree.root / KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return {}
        try:
            for number, message in _records(descriptor):
                if number > self._last:
                    self._last = number
                    self._counts.update(
                        name for name, one in patterns.items() if one.search(message)
                    )
        finally:
            os.close(descriptor)
        return {events.series(name): float(self._counts[name]) for name in patterns}


def patterns_of(own: Mapping[str, str]) -> Mapping[str, re.Pattern[str]]:
    """The patterns of a site over the bundled ones; an empty one takes its name away.

    Raises:
        HapteraError: one is no regular expression, or there are too many.
    """
    both = {name: text for name, text in {**PATTERNS, **own}.items() if text}
    if len(both) > PATTERNS_MAX:
        what = f"{len(both)} patterns of the kernel's log"
        raise HapteraError(what, do=f"write {PATTERNS_MAX} at most, the bundled ones included")
    try:
        return {name: re.compile(text) for name, text in both.items()}
    except re.error as error:
        raise HapteraError(
            f"{error.pattern!r} is no pattern: {error}", do="write a regular expression"
        ) from None


def heartbeats(tree: KernelTree, files: Mapping[str, str]) -> Measured:
    """The age of each application's heartbeat file; of one without a file, nothing."""
    return {
        beat.series(name): _touched_at(tree.root / path.lstrip("/")) for name, path in files.items()
    }


def _touched_at(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except (OSError, ValueError):
        return None


def _records(descriptor: int) -> Iterator[tuple[int, str]]:
    """The records of a log; the device gives one for each read."""
    rest, left = b"", LOG_BYTES_MAX
    while left > 0:
        try:
            piece = os.read(descriptor, RECORD_BYTES_MAX)
        except BlockingIOError:
            break
        except BrokenPipeError:
            continue  # the oldest were overwritten meanwhile
        if not piece:
            break
        left -= len(piece)
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            # Those that go on a record, with its fields, begin with a space.
            if (found := _RECORD.fullmatch(line.decode(errors="replace"))) is not None:
                yield int(found[1]), found[2]
