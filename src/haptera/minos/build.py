"""Builds a minOS: kernel, initramfs and the list of what is inside, the same bytes each time."""

import hashlib
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec

from haptera.minos.cpio import Entry, archive, character_device, file, program
from haptera.minos.distribution import Kernel, busybox, drivers_of, find_kernel
from haptera.minos.python import VERSION, python_entries
from haptera.model.errors import Code, HapteraError

KERNEL: Final = "kernel"
INITRAMFS: Final = "initramfs"
LIST: Final = "minos.json"
# Virtual machines, and the cards of common servers that need no firmware.
DRIVERS: Final = ("virtio_pci", "virtio_net", "e1000", "e1000e", "igb", "ixgbe", "r8169")
_ETC: Final = {
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\n",
    "passwd": "root:x:0:0:root:/run:/bin/sh\n",
    "group": "root:x:0:\n",
    "hosts": "127.0.0.1 localhost\n",
}
# A window of 32 MB, which the kernel holds until all is unpacked: most of the memory is free then.
_COMPRESSION: Final = ("-19", "--zstd=wlog=25", "--single-thread")


class Part(msgspec.Struct, frozen=True):
    """What a part of it is there for, and how large it is before it is compressed."""

    why: str
    files: int
    size_bytes: int


class Inside(msgspec.Struct, frozen=True):
    """What is in a minOS; `sha256` are those of its two files."""

    kernel: str
    python: str
    drivers: tuple[str, ...]
    size_bytes: int
    sha256: dict[str, str]
    parts: tuple[Part, ...]


def build(folder: Path, drivers: Sequence[str], kernel_version: str | None) -> Inside:
    """Build one in this folder, in place of the one before it.

    Raises:
        HapteraError: something that it needs is not installed here.
    """
    kernel = find_kernel(kernel_version)
    entries = _entries(kernel, drivers)
    packed = _compressed(archive(entries))
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / INITRAMFS, packed)
    _write(folder / KERNEL, kernel.image.read_bytes())
    inside = Inside(
        kernel.version,
        VERSION,
        tuple(drivers),
        len(packed),
        {name: _digest(folder / name) for name in (KERNEL, INITRAMFS)},
        _parts(entries),
    )
    _write(folder / LIST, msgspec.json.format(msgspec.json.encode(inside), indent=2) + b"\n")
    return inside


def read(folder: Path) -> Inside:
    """What is in the minOS of this folder.

    Raises:
        HapteraError: there is none, or its list is none.
    """
    try:
        return msgspec.json.decode((folder / LIST).read_bytes(), type=Inside)
    except FileNotFoundError:
        do = "haptera minos build"
        raise HapteraError("there is no minOS", where=str(folder), do=do) from None
    except msgspec.DecodeError as error:
        raise HapteraError(f"is not a valid list: {error}", where=str(folder / LIST)) from None


def _entries(kernel: Kernel, drivers: Sequence[str]) -> list[Entry]:
    loaded, order = drivers_of(kernel, drivers)
    init = files("haptera.minos").joinpath("init.sh").read_bytes()
    return [
        program("init", init, "init"),
        character_device("dev/console", 5, 1, "init"),
        character_device("dev/null", 1, 3, "init"),
        file("lib/drivers/order", "".join(f"{path}\n" for path in order).encode(), "drivers"),
        *(file(f"etc/{name}", text.encode(), "init") for name, text in _ETC.items()),
        *(Entry(path, 0o040755, why="init") for path in ("proc", "sys", "run", "tmp")),
        *loaded,
        *busybox(),
        *python_entries(),
    ]


def _parts(entries: Iterable[Entry]) -> tuple[Part, ...]:
    sizes, counts = Counter[str](), Counter[str]()
    for one in entries:
        why = one.why.partition(":")[0]
        sizes[why] += len(one.content)
        counts[why] += 1
    return tuple(Part(why, counts[why], size) for why, size in sorted(sizes.items()))


def _compressed(data: bytes) -> bytes:
    if shutil.which("zstd") is None:
        raise HapteraError("zstd is not here", do="apt install zstd", code=Code.NOT_INSTALLED)
    command = ["zstd", *_COMPRESSION, "-q", "-c"]
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def _write(path: Path, content: bytes) -> None:
    """Whoever reads it sees the whole of it, or of the one before."""
    draft = path.with_name(f"{path.name}.new")
    draft.write_bytes(content)
    draft.replace(path)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
