"""Files that grow line by line, to a size: the BMC's record of commands, what was started."""

import os
from pathlib import Path
from typing import Any, Final

import msgspec

# At this size a file becomes its own `.1`, and begins anew.
RECORD_BYTES_MAX: Final = 16 << 20


def append(path: Path, row: dict[str, Any]) -> None:
    """Add one JSON line, whole or not at all for concurrent readers."""
    make_room(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, msgspec.json.encode(row) + b"\n")
    finally:
        os.close(descriptor)


def begin_anew(path: Path) -> None:
    """Set a file of an earlier lab aside: what it tells is over."""
    if path.exists():
        path.replace(path.with_name(f"{path.name}.1"))


def make_room(path: Path) -> None:
    """Set a file that has reached its size aside."""
    if path.exists() and path.stat().st_size >= RECORD_BYTES_MAX:
        begin_anew(path)
