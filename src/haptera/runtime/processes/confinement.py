"""What a module's process may reach: not what is the parent's; and its user, one of its own.

Landlock (Linux 5.13) hides files from a process and all that it starts, without any privilege. Its
rules only allow: so all that lies beside the way to what is hidden is allowed, as it is at that
moment, and in the folders on the way nothing is made or removed. From Linux 6.12 on no signal
leaves either. A confined process traces none that is not.
"""

import ctypes
import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

import msgspec

from haptera.runtime.processes.zygote import die_with

# Users that nobody else has: a module's own follows from its name, and stays the same.
UID_FIRST: Final = 1_900_000_000
UIDS: Final = 100_000_000

_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH: Final = 1
# By version of the interface: all rights to files that it knows, as bits.
_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15}
_RIGHTS_NEWEST: Final = 16
_SCOPED_FROM: Final = 6
_SCOPED: Final = 0b11  # abstract sockets, and signals
# Those that mean something of a file: execute, write, read, truncate, ioctl.
_OF_FILES: Final = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
_READ_DIR: Final = 1 << 3
_RULESET: Final = Struct("=QQQ")
_RULE: Final = Struct("=Qi")
_libc = ctypes.CDLL(None, use_errno=True)


class Confinement(msgspec.Struct, frozen=True):
    """What one process is kept from: all that is `hidden`, but for its own `folder`.

    What is `listed` it may list, as a folder of code that it lies in: names of what is hidden
    below, too. With a `uid` it is this user, of no group but its own; the folder belongs to it.
    What of that is hidden is `shared` with it all the same; that must be there when it begins.
    """

    hidden: tuple[str, ...]
    folder: str
    listed: tuple[str, ...] = ()
    uid: int | None = None
    shared: tuple[str, ...] = ()


# What one process of a module of this name is kept from.
Confine = Callable[[str], Confinement | None]


def unconfined(_name: str) -> None:
    """Nothing is kept from any: they are as mighty as who starts them."""


def uid_of(name: str) -> int:
    """The user that a module of this name is."""
    return UID_FIRST + crc32(name.encode()) % UIDS


def landlock_version() -> int:
    """Which Landlock this kernel has; 0: none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, 1)))


def confine_to(confinement: Confinement) -> None:
    """Be so from now on, with all that this process starts; it can never be taken back.

    Raises:
        OSError: it cannot be; then the process must not go on.
    """
    parent = os.getppid()
    _make_folder(confinement)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if version := landlock_version():
        _hide(confinement, version)
    if confinement.uid is not None:
        os.setgroups([])
        os.setresgid(confinement.uid, confinement.uid, confinement.uid)
        os.setresuid(confinement.uid, confinement.uid, confinement.uid)
        # What the change of user has taken away: its own files in /proc, and its end with ours.
        _prctl(_PR_SET_DUMPABLE, 1)
        die_with(parent)


def unreachable(path: Path) -> Path | None:
    """What on the way to a file that is there others may not read; None: they reach it."""
    for one in (path, *path.parents):
        mode = one.stat().st_mode
        if not mode & (stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH):
            return one
    return None


def _make_folder(confinement: Confinement) -> None:
    folder = Path(confinement.folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if confinement.uid is not None and folder.stat().st_uid != confinement.uid:
        os.chown(folder, confinement.uid, confinement.uid)


def _hide(confinement: Confinement, version: int) -> None:
    rights = (1 << _RIGHTS.get(version, _RIGHTS_NEWEST)) - 1
    scoped = _SCOPED if version >= _SCOPED_FROM else 0
    attributes = _RULESET.pack(rights, 0, scoped)[: 24 if scoped else 8]
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0))
    try:
        hidden = {Path(one).resolve() for one in confinement.hidden}
        own = Path(confinement.folder).resolve()
        shared = (Path(one).resolve() for one in confinement.shared)
        for path in (own, *shared, *_beside(Path("/"), hidden)):
            _allow(ruleset, path, rights)
        for listed in confinement.listed:
            _allow(ruleset, Path(listed).resolve(), _READ_DIR)
        _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _beside(folder: Path, hidden: Collection[Path]) -> Iterator[Path]:
    """All in a folder that is not hidden, nor on the way to what is."""
    try:
        inside = sorted(os.scandir(folder), key=lambda one: one.name)
    except PermissionError:
        inside = []  # What cannot be listed is not reached beside what is known of it.
    for entry in inside:
        path = folder / entry.name
        if path in hidden or entry.is_symlink():
            continue
        if any(one.is_relative_to(path) for one in hidden):
            yield from _beside(path, hidden)
        else:
            yield path


def _allow(ruleset: int, path: Path, rights: int) -> None:
    """Allow all that is beneath a path; one that is gone by now needs no rule."""
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        of_it = rights if stat.S_ISDIR(os.fstat(place).st_mode) else rights & _OF_FILES
        rule = _RULE.pack(of_it, place)
        _checked(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    except OSError as error:
        if error.errno != errno.EBADFD:  # A file of the kernel's own, which no rule can be about.
            raise
    finally:
        os.close(place)


def _prctl(option: int, value: int) -> None:
    _checked(_libc.prctl(option, value, 0, 0, 0))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
