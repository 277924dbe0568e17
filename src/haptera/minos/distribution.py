"""What a minOS takes from the distribution: files of installed packages, libraries, drivers."""

import lzma
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from haptera.minos.cpio import Entry, file, link, program
from haptera.model.errors import Code, HapteraError

BOOT: Final = Path("/boot")
MODULES: Final = Path("/lib/modules")
FIRMWARE: Final = Path("/lib/firmware")
# How long a tool that only reads may take.
TOOL_WITHIN_S: Final = 60
LOADER_WITHIN_BYTES: Final = 4_096
_XZ: Final = b"\xfd7zXZ\0"
# In a driver: the files that it may ask the kernel for, by their names below `FIRMWARE`.
_ASKED: Final = re.compile(rb"\0firmware=([\w.+-]+(?:/[\w.+-]+)*)(?=\0)")
_LIBRARY: Final = re.compile(r"(?:=> )?(/\S+) \(0x")


@dataclass(frozen=True, slots=True)
class Kernel:
    """An installed kernel: its version, its image, and where its drivers are."""

    version: str
    image: Path
    drivers: Path


def run_tool(words: Sequence[str], what: str) -> str:
    """What a tool prints.

    Raises:
        HapteraError: it is not there, or fails.
    """
    # What is preloaded here, `ldd` would list as a library of every program.
    env = {**os.environ, "LD_PRELOAD": ""}
    try:
        done = subprocess.run(
            words, check=True, capture_output=True, text=True, timeout=TOOL_WITHIN_S, env=env
        )
    except FileNotFoundError:
        raise HapteraError(
            f"{words[0]} is not here", do=f"apt install {what}", code=Code.NOT_INSTALLED
        ) from None
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no output"])[-1]
        raise HapteraError(
            f"{words[0]} failed: {last}", do=f"apt install {what}", code=Code.NOT_INSTALLED
        ) from None
    return done.stdout


def files_of(package: str) -> list[Path]:
    """The files of an installed Debian package.

    Raises:
        HapteraError: it is not installed.
    """
    listed = run_tool(["dpkg-query", "-L", package], package).splitlines()
    return sorted(path for path in map(Path, listed) if path.is_file())


def find_kernel(version: str | None) -> Kernel:
    """The kernel of this version, or the newest that is installed with its drivers.

    Raises:
        HapteraError: there is none.
    """
    found = [
        Kernel(one.name.removeprefix("vmlinuz-"), one, MODULES / one.name.removeprefix("vmlinuz-"))
        for one in BOOT.glob("vmlinuz-*")
    ]
    fit = [
        one
        for one in found
        if (one.drivers / "modules.dep").is_file() and version in (None, one.version)
    ]
    if not fit:
        what = "no kernel is installed here" if version is None else f"there is no kernel {version}"
        do = "apt install linux-image-$(dpkg --print-architecture)"
        raise HapteraError(what, where=str(BOOT), do=do, code=Code.NOT_INSTALLED)
    return max(fit, key=lambda one: [int(part) for part in re.findall(r"\d+", one.version)])


def with_libraries(binaries: Iterable[Path], why: str) -> Iterator[Entry]:
    """The libraries that these binaries load, each under its own name."""
    seen: set[str] = set()
    for binary in sorted(binaries):
        for text in _LIBRARY.findall(run_tool(["ldd", str(binary)], "libc-bin")):
            if text in seen:
                continue
            seen.add(text)
            path = Path(text)
            yield program(text.lstrip("/"), path.read_bytes(), f"{why}: {binary.name} loads it")


def programs(names: Iterable[str]) -> Iterator[Entry]:
    """These programs of this machine, by name or path, and the libraries that they load.

    Raises:
        HapteraError: one is not here.
    """
    dynamic = []
    for name in names:
        found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
        if found is None:
            do = "install the package that has it"
            raise HapteraError(f"there is no program {name!r} here", do=do, code=Code.NOT_INSTALLED)
        content = Path(found).read_bytes()
        yield program(f"bin/{Path(found).name}", content, "programs")
        # Scripts and static binaries do not name the loader of libraries, which is at the start.
        if b"/ld-linux" in content[:LOADER_WITHIN_BYTES]:
            dynamic.append(Path(found))
    yield from with_libraries(dynamic, "library")


def drivers_of(kernel: Kernel, names: Sequence[str]) -> tuple[list[Entry], list[str]]:
    """These drivers and what they need, and the order in which they are loaded.

    A driver that the kernel has built in needs no file.

    Raises:
        HapteraError: the kernel has none of this name.
    """
    listed = (kernel.drivers / "modules.dep").read_text(encoding="ascii").splitlines()
    needs = {left: right.split() for left, _, right in (line.partition(":") for line in listed)}
    by_name = {_name(path): path for path in needs}
    built_in = {
        _name(line)
        for line in (kernel.drivers / "modules.builtin").read_text(encoding="ascii").splitlines()
    }
    order: list[str] = []
    for name in names:
        if name not in by_name:
            if name in built_in:
                continue
            do = f"name one of those in {kernel.drivers}"
            raise HapteraError(f"kernel {kernel.version} has no driver {name!r}", do=do)
        # Those at the end of its line are needed by those before them.
        order += [
            one for one in [*reversed(needs[by_name[name]]), by_name[name]] if one not in order
        ]
    entries = [
        file(f"lib/drivers/{Path(path).name}", (kernel.drivers / path).read_bytes(), "drivers")
        for path in order
    ]
    return entries, [f"/lib/drivers/{Path(path).name}" for path in order]


def firmware_of(drivers: Iterable[Entry], folder: Path = FIRMWARE) -> tuple[list[Entry], list[str]]:
    """The firmware that these drivers name and that is installed, and the names of what is not.

    Of some only old cards need what is named; others run without it as slower ones.
    """
    named = {
        name.decode("ascii")
        for one in drivers
        for name in _ASKED.findall(b"\0" + _unpacked(one.content))
        if b".." not in name
    }
    there = sorted(name for name in named if (folder / name).is_file())
    found = [
        file(f"lib/firmware/{name}", (folder / name).read_bytes(), "firmware") for name in there
    ]
    return found, sorted(named.difference(there))


def _unpacked(driver: bytes) -> bytes:
    """A driver as it is loaded; from Debian 13 on they lie compressed."""
    return lzma.decompress(driver) if driver.startswith(_XZ) else driver


def busybox() -> list[Entry]:
    """The static busybox, under the names of its programs.

    Raises:
        HapteraError: it is not installed.
    """
    found = [one for one in files_of("busybox-static") if one.name == "busybox"]
    names = run_tool([str(found[0]), "--list"], "busybox-static").split()
    links = [link(f"bin/{name}", "busybox", "busybox") for name in names if name != "busybox"]
    return [program("bin/busybox", found[0].read_bytes(), "busybox"), *links]


def _name(path: str) -> str:
    return Path(path).name.partition(".ko")[0].replace("-", "_")
