"""Builds a minOS: kernel, initramfs and the list of what is inside, the same bytes each time."""

import hashlib
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec

from haptera.minos.cpio import Entry, archive, character_device, file, program
from haptera.minos.distribution import busybox, drivers_of, find_kernel, firmware_of, programs
from haptera.minos.python import VERSION, python_entries
from haptera.minos.ssh import fingerprint, ssh_entries
from haptera.model.errors import Code, HapteraError

KERNEL: Final = "kernel"
INITRAMFS: Final = "initramfs"
LIST: Final = "minos.json"
# By which it hears its power button, whatever other drivers are chosen.
BUTTON: Final = ("button", "evdev")
# Virtual machines, the cards of common servers that need no firmware, and the mounts of systems.
DRIVERS: Final = (
    *("virtio_pci", "virtio_net", "e1000", "e1000e", "igb", "ixgbe", "r8169"),
    *("loop", "squashfs", "overlay"),
    *BUTTON,
)
# One word for those, and the cards of servers with 10 to 400 Gbit/s.
SETS: Final = {"servers": (*DRIVERS, "mlx5_core", "bnxt_en", "tg3", "ice", "i40e")}
# What the acpid of busybox runs when the power button is pressed.
ON_BUTTON: Final = "etc/acpi/PWRF/00000080"
_ETC: Final = {
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\n",
    "passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "group": "root:x:0:\n",
    "hosts": "127.0.0.1 localhost\n",
}
# A window of 32 MB, which the kernel holds until all is unpacked: most of the memory is free then.
_COMPRESSION: Final = ("--zstd=wlog=25", "--single-thread")
# The levels of zstd. The highest is by far the slowest, and gives the smallest initramfs.
LEVELS: Final = (1, 19)


class Part(msgspec.Struct, frozen=True):
    """What a part of it is there for, and how large it is before it is compressed."""

    why: str
    files: int
    size_bytes: int


class Inside(msgspec.Struct, frozen=True):
    """What is in a minOS; `sha256` are of its two files, `ssh` of the public keys for its root.

    `without_firmware` is what its drivers may ask for, and what is not installed here.
    """

    kernel: str
    python: str
    drivers: tuple[str, ...]
    size_bytes: int
    sha256: dict[str, str]
    parts: tuple[Part, ...]
    ssh: tuple[str, ...] = ()
    without_firmware: tuple[str, ...] = ()


def build(
    folder: Path,
    drivers: Sequence[str],
    kernel_version: str | None,
    added: Sequence[str] = (),
    *,
    ssh_keys: Sequence[str] = (),
    level: int = LEVELS[1],
) -> Inside:
    """Build one in this folder, in place of the one before it; `added` are further programs.

    Only with `ssh_keys` it has an SSH server. `level` is the one of zstd, within `LEVELS`.

    Raises:
        HapteraError: something that it needs is not installed here.
    """
    kernel = find_kernel(kernel_version)
    named = (one for name in drivers for one in SETS.get(name, (name,)))
    drivers = [*dict.fromkeys([*named, *BUTTON])]
    loaded, order = drivers_of(kernel, drivers)
    firmware, missing = firmware_of(loaded)
    entries = _entries([*loaded, *firmware], order, added, ssh_keys)
    packed = _compressed(archive(entries), level)
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
        tuple(fingerprint(key) for key in ssh_keys),
        tuple(missing),
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
    except (ValueError, RecursionError) as error:
        raise HapteraError(f"is not a valid list: {error}", where=str(folder / LIST)) from None


def _entries(
    drivers: Sequence[Entry], order: Sequence[str], added: Sequence[str], ssh_keys: Sequence[str]
) -> list[Entry]:
    scripts = files("haptera.minos")
    found = [
        program("init", scripts.joinpath("init.sh").read_bytes(), "init"),
        program(ON_BUTTON, scripts.joinpath("off.sh").read_bytes(), "init"),
        character_device("dev/console", 5, 1, "init"),
        character_device("dev/null", 1, 3, "init"),
        file("lib/drivers/order", "".join(f"{path}\n" for path in order).encode(), "drivers"),
        *(file(f"etc/{name}", text.encode(), "init") for name, text in _ETC.items()),
        *(Entry(path, 0o040755, why="init") for path in ("proc", "sys", "run", "tmp", "mnt")),
        Entry("root", 0o040700, why="init"),
        *drivers,
        *busybox(),
        *programs(added),
        *(ssh_entries(ssh_keys) if ssh_keys else ()),
        *python_entries(),
    ]
    # Several programs load one library, and one may be a better one than that of busybox.
    return [*{one.path: one for one in found}.values()]


def _parts(entries: Iterable[Entry]) -> tuple[Part, ...]:
    sizes, counts = Counter[str](), Counter[str]()
    for one in entries:
        why = one.why.partition(":")[0]
        sizes[why] += len(one.content)
        counts[why] += 1
    return tuple(Part(why, counts[why], size) for why, size in sorted(sizes.items()))


def _compressed(data: bytes, level: int) -> bytes:
    if shutil.which("zstd") is None:
        raise HapteraError("zstd is not here", do="apt install zstd", code=Code.NOT_INSTALLED)
    # It shows people how far it is.
    told = "--progress" if sys.stderr.isatty() else "-q"
    command = ["zstd", f"-{level}", *_COMPRESSION, told, "-c"]
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def _write(path: Path, content: bytes) -> None:
    """Replaced at once: a reader sees the whole of it, or of the one before."""
    draft = path.with_name(f"{path.name}.new")
    draft.write_bytes(content)
    draft.replace(path)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
