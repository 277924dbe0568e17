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
from haptera.model.errors import HapteraError, UnreadableError
from haptera.runtime import clock
from haptera.runtime.identity.pki import ends_s
from haptera.runtime.identity.private import open_unlinked
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
FILE_BYTES_MAX: Final = 1 << 20
# How long a parent that is there may take for an answer.
ANSWER_S_MAX: Final = 5.0
CERTIFICATES: Final = ("ca.pem", "parent.pem", "api.pem")


@dataclass(frozen=True, slots=True)
class InstalledParent:
    """A parent's installation: what is there, whatever it should be.

    `address` is where nodes reach it, and `is_ours` whether this machine has it. `taken` are ports
    that another program has, `runs` is the version of the parent that answers, `silent` why the one
    that is there does not. Files that others can read are `open_files`, those of another user
    `foreign`, those that cannot be used `unusable`, with the reason. `ends_s` has when certificates
    end.
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
    silent: str | None = None
    open_files: tuple[Path, ...] = ()
    foreign: tuple[Path, ...] = ()
    unusable: Mapping[Path, str] = field(default_factory=dict)
    ends_s: Mapping[Path, float] = field(default_factory=dict)
    now_s: float = 0.0
    landlock: int = 1
    owner: int = 0
    sealed: bool = True


def look(directory: Path, address: str) -> InstalledParent:
    """Inspect the installation whose state is, or will be, in a directory."""
    state = directory / ".haptera"
    files = sorted(_files(state))
    unusable: dict[Path, str] = {}
    runs, silent = _runs(state)
    ours = _is_ours(address)
    there = next(one for one in (directory.resolve(), *directory.resolve().parents) if one.exists())
    stats = os.statvfs(there)
    owner = state.stat().st_uid if state.exists() else os.geteuid()
    key = state / "parent" / "ca.key"
    return InstalledParent(
        directory,
        address,
        ours,
        tuple(_taken(address)) if ours and runs is None and silent is None else (),
        _keeps_time(),
        locale.getpreferredencoding(),
        stats.f_bavail * stats.f_frsize,
        runs=runs,
        silent=silent,
        open_files=tuple(one for one in (state / "client.json", key.parent) if _is_open(one)),
        foreign=tuple(one for one in files if one.lstat().st_uid != owner),
        ends_s=dict(_ends(files, unusable)),
        now_s=clock.wall_s(),
        landlock=landlock_version(),
        owner=owner,
        sealed=(content := _content(key, unusable)) is None or is_sealed(content),
        unusable=unusable,
    )


def listened(options: Path) -> str:
    """The address that the options of `haptera serve` in a file name, or the one by default.

    Raises:
        HapteraError: they cannot be read.
    """
    try:
        text = _read(options).decode()
        words = [part for word in _parted(text) for part in _parted(word)]
    except FileNotFoundError:
        return LOCAL
    except (OSError, ValueError) as error:
        do = "write it anew: haptera setup parent"
        what = f"cannot be read as options: {_reason(error)}"
        raise UnreadableError(what, where=str(options), do=do) from None
    return next((after for one, after in pairwise(words) if one == "--listen"), LOCAL)


def _parted(text: str) -> list[str]:
    return shlex.split(text.removeprefix("HAPTERA_SERVE="), comments=True)


def _read(path: Path) -> bytes:
    """The content of a small file; its owner, the daemon's user, may have put anything there."""
    with open_unlinked(path) as file:
        content = file.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise ValueError(f"more than {FILE_BYTES_MAX} bytes")
    return content


def _content(path: Path, unusable: dict[Path, str]) -> bytes | None:
    """The same; None where there is none, or none that can be used, which is noted."""
    try:
        return _read(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        unusable[path] = _reason(error)
        return None


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _files(state: Path) -> Iterator[Path]:
    """The parent's own: folders of modules belong to their users."""
    yield from (one for one in state.glob("*.json") if not one.is_dir())
    yield from (one for one in (state / "parent").rglob("*") if not one.is_dir())


def _is_open(path: Path) -> bool:
    """True if the mode lets others read it; nobody else reaches a file in a private folder."""
    return path.exists() and bool(path.stat().st_mode & _OTHERS)


def _runs(state: Path) -> tuple[str | None, str | None]:
    """The version of the parent that answers at its socket, or why the one there does not."""
    from haptera.client import Client, UnreachableError, calls, find

    place = state / "api.sock"
    if not _listens(place):
        return None, None
    try:
        with Client(find(place).access, within_s=ANSWER_S_MAX) as client:
            return client.ask(calls.health()).version, None
    except UnreachableError:
        return None, f"no answer within {ANSWER_S_MAX:g} s, or none that can be used"
    except HapteraError as error:
        return None, error.what


def _listens(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(ANSWER_S_MAX)
        try:
            one.connect(str(place))
        except TimeoutError:
            return True  # more wait there than it has accepted
        except OSError:
            return False
    return True


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


def _ends(files: Iterable[Path], unusable: dict[Path, str]) -> Iterator[tuple[Path, float]]:
    for path in files:
        if path.name in CERTIFICATES and (content := _content(path, unusable)) is not None:
            try:
                yield path, ends_s(content)
            except ValueError:
                unusable[path] = "it is no certificate"
