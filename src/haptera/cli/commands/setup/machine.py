"""The state of an installation, read once: the rest is decided on these values."""

import ctypes
import locale
import os
import shlex
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import haptera
from haptera.daemon.parts import HELLO_PORT
from haptera.daemon.settings import API_PORT
from haptera.model.errors import HapteraError
from haptera.runtime import clock
from haptera.runtime.identity.pki import ends_s
from haptera.runtime.identity.sealing import is_sealed
from haptera.runtime.processes.confinement.confinement import landlock_version

# The return value of adjtimex(2) for a clock that nothing synchronises.
_TIME_ERROR: Final = 5
_TIMEX_BYTES: Final = 512
LOCAL: Final = "127.0.0.1"
# Sort, port: the API, and what nodes speak with.
PORTS: Final = (
    (socket.SOCK_STREAM, API_PORT),
    (socket.SOCK_STREAM, HELLO_PORT),
    (socket.SOCK_DGRAM, HELLO_PORT),
)
_SORTS: Final = {socket.SOCK_STREAM: "TCP", socket.SOCK_DGRAM: "UDP"}
_OTHERS: Final = 0o077
CERTIFICATES: Final = ("ca.pem", "parent.pem", "api.pem")


@dataclass(frozen=True, slots=True)
class InstalledParent:
    """A parent's installation: what is there, whatever it should be.

    `address` is where nodes reach it, and `is_ours` whether this machine has it. `taken` are ports
    that another program has, `runs` is the version of the parent that answers. Files that others
    can read are `open_files`, those of another user `foreign`. `ends_s` has when certificates end.
    """

    directory: Path
    address: str = LOCAL
    is_ours: bool = True
    taken: tuple[str, ...] = ()
    keeps_time: bool = True
    encoding: str = "UTF-8"
    free_bytes: int = 1 << 40
    version: str = haptera.__version__
    runs: str | None = None
    open_files: tuple[Path, ...] = ()
    foreign: tuple[Path, ...] = ()
    ends_s: Mapping[Path, float] = field(default_factory=dict)
    now_s: float = 0.0
    landlock: int = 1
    owner: int = 0
    sealed: bool = True


def look(directory: Path, address: str) -> InstalledParent:
    """Inspect the installation whose state is, or will be, in a directory."""
    state = directory / ".haptera"
    files = sorted(_files(state))
    runs = _runs(state)
    ours = _is_ours(address)
    there = next(one for one in (directory.resolve(), *directory.resolve().parents) if one.exists())
    stats = os.statvfs(there)
    owner = state.stat().st_uid if state.exists() else os.geteuid()
    key = state / "parent" / "ca.key"
    return InstalledParent(
        directory,
        address,
        ours,
        tuple(_taken(address)) if ours and runs is None else (),
        _keeps_time(),
        locale.getpreferredencoding(),
        stats.f_bavail * stats.f_frsize,
        runs=runs,
        open_files=tuple(one for one in (state / "client.json", key.parent) if _is_open(one)),
        foreign=tuple(one for one in files if one.lstat().st_uid != owner),
        ends_s=dict(_ends(files)),
        now_s=clock.wall_s(),
        landlock=landlock_version(),
        owner=owner,
        sealed=not key.exists() or is_sealed(key.read_bytes()),
    )


def listened(options: Path) -> str:
    """The address that the options of `haptera serve` in a file name, or the one by default."""
    words = shlex.split(options.read_text("utf-8"), comments=True) if options.exists() else []
    given = [part for word in words for part in shlex.split(word.removeprefix("HAPTERA_SERVE="))]
    return next((after for one, after in pairwise(given) if one == "--listen"), LOCAL)


def _files(state: Path) -> Iterator[Path]:
    """The parent's own: folders of modules belong to their users."""
    yield from (one for one in state.glob("*.json") if one.is_file())
    yield from (one for one in (state / "parent").rglob("*") if one.is_file())


def _is_open(path: Path) -> bool:
    """True if the mode lets others read it; nobody else reaches a file in a private folder."""
    return path.exists() and bool(path.stat().st_mode & _OTHERS)


def _runs(state: Path) -> str | None:
    """The version of the parent that answers at its socket; None where none does."""
    from haptera.client import Client, calls, find

    if not (place := state / "api.sock").is_socket():
        return None
    try:
        with Client(find(place).access) as client:
            return client.ask(calls.health()).version
    except HapteraError:
        return None


def _is_ours(address: str) -> bool:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind((address, 0))
    except OSError:
        return False
    return True


def _taken(address: str) -> Iterator[str]:
    for sort, port in PORTS:
        with socket.socket(socket.AF_INET, sort) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, sort == socket.SOCK_STREAM)
            try:
                one.bind((address, port))
            except OSError:
                yield f"{_SORTS[sort]} {port}"


def _keeps_time() -> bool:
    """True if the kernel reports that this machine's clock is synchronised."""
    state: int = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return state != _TIME_ERROR


def _ends(files: Iterable[Path]) -> Iterator[tuple[Path, float]]:
    for path in files:
        if path.name in CERTIFICATES and os.access(path, os.R_OK):
            yield path, ends_s(path.read_bytes())
