"""Reads what is in an artefact: as one stream from unsquashfs, without a mount, root or a copy."""

import hashlib
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import msgspec

from haptera.kinds.inventory import FileSort, ImageFile, Inventory
from haptera.sdk import HapteraError
from haptera.sdk.commands import unbound

CHUNK_BYTES: Final = 1 << 20
# The list of files of an image, all of it; a path of Linux takes 4 kB.
HEADER_BYTES_MAX: Final = 256 << 20
# All files of an image together; each is read, and a squashfs of 4 kB may have any amount.
CONTENTS_BYTES_MAX: Final = 128 << 30
DPKG_STATUS: Final = "/var/lib/dpkg/status"
DPKG_BYTES_MAX: Final = 64 << 20
LINKS_MAX: Final = 40

# A pseudo file: a line for each path, a marker, then the contents one after another.
_DATA: Final = b"# START OF DATA"
_LINE: Final = re.compile(rb"((?:\\.|[^\\ ])+) ([A-Z]) (.*)", re.DOTALL)
_ESCAPED: Final = re.compile(rb"\\(.)", re.DOTALL)
_SORTS: Final[Mapping[bytes, FileSort]] = {
    b"R": FileSort.FILE,
    b"D": FileSort.FOLDER,
    b"S": FileSort.LINK,
    b"C": FileSort.CHARACTER,
    b"B": FileSort.BLOCK,
}
_IPC: Final = {b"f": FileSort.FIFO, b"s": FileSort.SOCKET}
_ELF: Final = b"\x7fELF"
# What Go, and with it OCI, calls the machines of ELF's e_machine.
_MACHINES: Final = {3: "386", 21: "ppc64le", 22: "s390x", 40: "arm", 62: "amd64", 183: "arm64"}
_MACHINES_RISCV: Final = 243


@dataclass(slots=True)
class Contents:
    """The files of an artefact by their paths, its packages, and for which machines it has code."""

    files: dict[str, ImageFile] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)
    machines: Counter[str] = field(default_factory=Counter)

    def inventory(self, digest: str) -> Inventory:
        """The same, as it is kept and sent."""
        return Inventory(digest, [self.files[path] for path in sorted(self.files)], self.packages)

    def resolved(self, path: str) -> ImageFile | None:
        """Where a path leads, whose links are followed as they are seen from inside."""
        place, left = "", [one for one in path.split("/") if one][::-1]
        for _ in range(LINKS_MAX + len(left)):
            if not left:
                return self.files.get(place or "/")
            piece = left.pop()
            if piece == "..":
                place = place.rpartition("/")[0]
            elif piece != ".":
                found = self.files.get(f"{place}/{piece}")
                if found is not None and found.sort is FileSort.LINK and found.content is not None:
                    place = "" if found.content.startswith("/") else place
                    left += [one for one in found.content.split("/") if one][::-1]
                else:
                    place = f"{place}/{piece}"
        return None


def contents_of(artefact: Path) -> Contents:
    """What is in a squashfs.

    Raises:
        HapteraError: it is none, or is damaged.
    """
    words = ["unsquashfs", "-quiet", "-no-progress", "-pf", "/dev/stdout", str(artefact)]
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=unbound,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            found = _read(process.stdout)
        except ValueError as error:
            process.kill()
            said = process.stderr.read(CHUNK_BYTES).decode(errors="replace").split("\n")[0]
            raise HapteraError(
                f"its files cannot be read: {said or error}",
                where=str(artefact),
                do="see that it is a whole squashfs: unsquashfs -s FILE",
            ) from None
    return found


def _read(stream: IO[bytes]) -> Contents:
    """All of a pseudo file.

    Raises:
        ValueError: it is none, or ends too early.
    """
    found = Contents()
    named_again: list[tuple[str, str]] = []
    for path, sort, words in _entries(stream):
        if sort == b"L":
            named_again.append((path, "/" + _text(words).strip("/")))
        else:
            found.files[path] = _file(path, sort, words)
    if sum(one.size_bytes for one in found.files.values()) > CONTENTS_BYTES_MAX:
        raise ValueError(f"its files have more than {CONTENTS_BYTES_MAX >> 30} GiB")
    for one in [*found.files.values()]:
        if one.sort is FileSort.FILE:
            found.files[one.path] = _with_content(found, one, stream)
    for path, other in named_again:
        if other not in found.files:
            raise ValueError(f"{path} is another name of what is not there")
        found.files[path] = msgspec.structs.replace(found.files[other], path=path)
    return found


def _entries(stream: IO[bytes]) -> Iterator[tuple[str, bytes, bytes]]:
    """The path, the letter of the sort, and the rest of each line, up to the contents."""
    left, read = b"", 0
    while line := stream.readline(CHUNK_BYTES):
        read += len(line)
        if read > HEADER_BYTES_MAX:
            raise ValueError(f"its list of files has more than {HEADER_BYTES_MAX} bytes")
        if line.startswith(_DATA):
            stream.readline(CHUNK_BYTES)
            return
        if line.startswith(b"#") and not left:
            continue
        left += line
        # A newline in a name is written as it is: the name goes on in the next line.
        if match := _LINE.fullmatch(left[:-1]):
            left = b""
            yield _path(match[1]), match[2], match[3]
    raise ValueError("it is no squashfs")


def _path(escaped: bytes) -> str:
    return "/" + _text(_ESCAPED.sub(rb"\1", escaped)).strip("/")


def _text(words: bytes) -> str:
    # As JSON has it later: what is no UTF-8 is shown as what it cannot be.
    return words.decode(errors="backslashreplace")


def _file(path: str, sort: bytes, words: bytes) -> ImageFile:
    _, mode, uid, gid, *rest = words.split(b" ", 4)
    tail = rest[0] if rest else b""
    kind = _IPC.get(tail) if sort == b"I" else _SORTS.get(sort)
    if kind is None:
        raise ValueError(f"{path} is of an unknown sort, {_text(sort)}")
    size = int(tail.split(b" ")[0]) if kind is FileSort.FILE else 0
    content = None if kind is FileSort.FILE or not tail else _text(tail)
    if kind in (FileSort.FIFO, FileSort.SOCKET):
        content = None
    return ImageFile(path, kind, int(mode, 8), int(uid), int(gid), size, content)


def _with_content(found: Contents, one: ImageFile, stream: IO[bytes]) -> ImageFile:
    """The file with its digest, from the next bytes of the stream."""
    sha256, left, status = hashlib.sha256(), one.size_bytes, bytearray()
    while left:
        chunk = stream.read(min(CHUNK_BYTES, left))
        if not chunk:
            raise ValueError("it is cut short")
        if left == one.size_bytes and chunk.startswith(_ELF):
            found.machines.update(_machine(chunk))
        if one.path == DPKG_STATUS and one.size_bytes <= DPKG_BYTES_MAX:
            status += chunk
        sha256.update(chunk)
        left -= len(chunk)
    found.packages.update(_packages(status.decode(errors="replace")))
    return msgspec.structs.replace(one, content=sha256.hexdigest())


def _machine(head: bytes) -> Iterator[str]:
    if len(head) >= 20:
        number = int.from_bytes(head[18:20], "big" if head[5] == 2 else "little")
        yield "riscv64" if number == _MACHINES_RISCV else _MACHINES.get(number, f"machine {number}")


def _packages(status: str) -> Iterator[tuple[str, str]]:
    """The installed packages and their versions, as dpkg keeps them."""
    for stanza in status.split("\n\n"):
        fields = dict(
            line.partition(": ")[::2] for line in stanza.splitlines() if not line.startswith(" ")
        )
        if fields.get("Status", "").endswith(" installed") and "Package" in fields:
            yield fields["Package"], fields.get("Version", "")
