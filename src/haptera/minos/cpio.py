"""An archive in the kernel's own form (cpio, `newc`): the same entries give the same bytes."""

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_TRAILER: Final = "TRAILER!!!"


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One file, folder, link or device; `why` says for whom it is there."""

    path: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)
    why: str = ""


def file(path: str, content: bytes, why: str) -> Entry:
    return Entry(path, stat.S_IFREG | 0o644, content, why=why)


def program(path: str, content: bytes, why: str) -> Entry:
    return Entry(path, stat.S_IFREG | 0o755, content, why=why)


def link(path: str, target: str, why: str) -> Entry:
    return Entry(path, stat.S_IFLNK | 0o777, target.encode(), why=why)


def character_device(path: str, major: int, minor: int, why: str) -> Entry:
    return Entry(path, stat.S_IFCHR | 0o600, device=(major, minor), why=why)


def folder(path: str, why: str) -> Entry:
    return Entry(path, stat.S_IFDIR | 0o755, why=why)


def archive(entries: Iterable[Entry]) -> bytes:
    """All entries, and the folders that they need, sorted, of root, without times.

    >>> archive([file("etc/name", b"n01", "")])[:6]
    b'070701'
    """
    by_path = {one.path: one for one in entries}
    for path in [*by_path]:
        parts = path.split("/")[:-1]
        for end in range(1, len(parts) + 1):
            above = "/".join(parts[:end])
            by_path.setdefault(above, folder(above, "holds others"))
    ordered = [*(by_path[path] for path in sorted(by_path)), Entry(_TRAILER, 0)]
    return b"".join(_packed(number, one) for number, one in enumerate(ordered, 1))


def _packed(number: int, entry: Entry) -> bytes:
    name = entry.path.encode() + b"\0"
    fields = [number, entry.mode, 0, 0, 1, 0, len(entry.content), 0, 0, *entry.device]
    head = b"070701" + b"".join(b"%08X" % value for value in [*fields, len(name), 0])
    return _padded(head + name) + _padded(entry.content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
