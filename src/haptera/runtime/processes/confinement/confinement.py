"""The reach of a module's process: not its daemon's files; and a user of its own.

Landlock (Linux 5.13) hides files from a process and all that it starts, without any privilege. Its
rules only allow: so all that lies beside the way to what is hidden may be read, as it is at that
moment, and below what is named it may be written. From Linux 6.7 on no TCP port is served, from
6.12 on no signal leaves. A confined process traces none that is not.
"""

import ctypes
import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

import msgspec

from haptera.model.errors import HapteraError
from haptera.model.parts import Privilege
from haptera.runtime.processes.confinement import capabilities
from haptera.runtime.processes.confinement.mounting import enclose, hide
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
_PORTS_FROM: Final = 4
_SERVING: Final = 1 << 0  # binding TCP ports
_SCOPED_FROM: Final = 6
_SCOPED: Final = 0b11  # abstract sockets, and signals
# Those that mean something of a file: execute, write, read, truncate, ioctl.
_OF_FILES: Final = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
_READ_DIR: Final = 1 << 3
_READING: Final = 1 << 0 | 1 << 2 | _READ_DIR
# What everybody may write, and every program takes for granted.
_WRITTEN_BY_ALL: Final = (
    *("/tmp", "/var/tmp", "/dev/shm", "/dev/pts", "/dev/mqueue"),
    *(f"/dev/{one}" for one in ("null", "zero", "full", "random", "urandom", "tty", "ptmx")),
)
_DEVICES: Final = Path("/dev")
# By their major numbers: the memory of the machine, and terminals. No module asks for these.
_NOT_TOLD: Final = (1, 4, 5, 7, 136)
_RULESET: Final = Struct("=QQQ")
_RULE: Final = Struct("=Qi")
_libc = ctypes.CDLL(None, use_errno=True)


class Confinement(msgspec.Struct, frozen=True):
    """What one process is kept from: all that is `hidden`, but for its own `folder`.

    What is `listed` it may list, as a folder of code that it lies in: names of what is hidden
    below, too. With a `uid` it is this user, of no group but its own; the folder belongs to it.
    What of that is hidden is `shared` with it all the same; that must be there when it begins.
    It may do what it `needs`, and write, of what is not hidden, below what it `writes`. As root
    that needs `namespaces` it mounts in one of its own; there, the folder of a hidden file is
    hidden with it. Where it `hosts` programs of people these are not in its way: as root nothing is
    hidden by Landlock but by mounts, and they may be raised (sudo), to no more than it may do; as a
    plain user they may do what that user may.
    """

    hidden: tuple[str, ...]
    folder: str
    listed: tuple[str, ...] = ()
    uid: int | None = None
    shared: tuple[str, ...] = ()
    needs: tuple[Privilege, ...] = ()
    writes: tuple[str, ...] = ()
    hosts: bool = False


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
        HapteraError: there are no namespaces for it; neither must it then.
    """
    parent, is_root = os.getppid(), os.geteuid() == 0
    _make_folder(confinement)
    groups = _groups_of_devices() if Privilege.DEVICES in confinement.needs else set[int]()
    if confinement.hosts and not is_root:
        return
    mounts = {Privilege.MOUNTS, Privilege.NAMESPACES} & {*confinement.needs}
    if confinement.hosts:
        confinement = _hidden_by_mounts(confinement)
    else:
        if Privilege.NAMESPACES in mounts and is_root and not _enclosed(confinement):
            # Nor can it mount, then: all is hidden as from others that are root.
            confinement = msgspec.structs.replace(confinement, needs=(Privilege.ROOT,))
            mounts.clear()
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    version = landlock_version()
    if not mounts and version:
        _hide(confinement, version)
    elif Privilege.NAMESPACES in mounts and version >= _SCOPED_FROM:
        with _restricted(_RULESET.pack(0, 0, _SCOPED)):
            pass  # It keeps signals in, and has no rule about files: who has one may not mount.
    if is_root:
        capabilities.keep(capabilities.of_needs(confinement.needs), confinement.uid, groups)
        # What the change of user has taken away: its own files in /proc, and its end with ours.
        _prctl(_PR_SET_DUMPABLE, 1)
        die_with(parent)


def hide_from_now_on(hidden: tuple[str, ...]) -> bool:
    """Reach nothing of that, nor gain any right, with all that this process starts and becomes.

    False: this kernel hides nothing.

    Raises:
        OSError: it cannot be; then the process must not go on.
    """
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if version := landlock_version():
        _hide(Confinement(hidden, os.devnull), version)
    return version > 0


def _hidden_by_mounts(confinement: Confinement) -> Confinement:
    """What is left to be hidden; where root may not mount, as in some containers, all of it."""
    kept = [Path(one).resolve() for one in (confinement.folder, *confinement.shared)]
    try:
        hide([Path(one).resolve() for one in confinement.hidden], kept)
    except PermissionError:
        return confinement
    return msgspec.structs.replace(confinement, hidden=())


def _enclosed(confinement: Confinement) -> bool:
    """Hide all of it from who may mount, in namespaces of its own.

    Not so where root may not mount, as in some containers.
    """
    files = (Path(one).resolve() for one in confinement.hidden)
    folders = {one if one.is_dir() else one.parent for one in files}
    kept = [Path(one).resolve() for one in (confinement.folder, *confinement.shared)]
    by_all = [Path(one).resolve() for one in _WRITTEN_BY_ALL if Path(one).exists()]
    written = [*by_all, *(Path(one).resolve() for one in confinement.writes)]
    try:
        enclose([one for one in folders if folders.isdisjoint(one.parents)], kept, written)
    except PermissionError:
        return False
    except OSError as error:
        raise HapteraError(
            f"modules that mount need a user namespace, and there is none: {error.strerror}",
            do="allow them (sysctl user.max_user_namespaces); Linux 5.12 or later is needed",
        ) from error
    return True


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
    needs = confinement.needs
    rights = (1 << _RIGHTS.get(version, _RIGHTS_NEWEST)) - 1
    serving = _SERVING if version >= _PORTS_FROM and Privilege.PORTS not in needs else 0
    # Who is root ends what earlier processes of it have started.
    scoped = _SCOPED if version >= _SCOPED_FROM and Privilege.ROOT not in needs else 0
    attributes = _RULESET.pack(rights, serving, scoped)
    attributes = attributes[: 24 if version >= _SCOPED_FROM else 16 if serving else 8]
    with _restricted(attributes) as ruleset:
        hidden = {*(Path(one).resolve() for one in confinement.hidden), _DEVICES}
        ways = {way for one in hidden for way in one.parents}
        written = {Path(one).resolve() for one in (*_WRITTEN_BY_ALL, *confinement.writes)}
        for path in map(Path, (confinement.folder, *confinement.shared)):
            _allow(ruleset, path.resolve(), rights)
        # What lies beside a way that may be written is allowed below: /tmp may hold thousands.
        for one in _beside("/", hidden | written & ways):
            _allow(ruleset, one, rights & _READING)
        for path in sorted(written):
            for one in _beside_or_itself(path, hidden):
                _allow(ruleset, one, rights)
        if Privilege.DEVICES in needs:
            for path in _devices(_DEVICES):
                _allow(ruleset, path, rights)
        for listed in confinement.listed:
            _allow(ruleset, Path(listed).resolve(), _READ_DIR)


@contextmanager
def _restricted(attributes: bytes) -> Iterator[int]:
    """A ruleset, by which this process goes from then on."""
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0))
    try:
        yield ruleset
        _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _beside(folder: str, hidden: Collection[Path]) -> Iterator[str]:
    """All in a folder that is not hidden, nor on the way to what is.

    As texts, for there may be thousands, and a module that starts has to wait for them.
    """
    ways = {str(way) for one in hidden for way in one.parents}
    yield from _beside_texts(folder, {*map(str, hidden)}, ways)


def _beside_texts(folder: str, hidden: set[str], ways: set[str]) -> Iterator[str]:
    try:
        inside = sorted(os.scandir(folder), key=lambda one: one.name)
    except PermissionError:
        inside = []  # What cannot be listed is not reached beside what is known of it.
    for entry in inside:
        if entry.path in hidden or entry.is_symlink():
            continue
        if entry.path in ways:
            yield from _beside_texts(entry.path, hidden, ways)
        else:
            yield entry.path


def _beside_or_itself(path: Path, hidden: Collection[Path]) -> Iterator[str]:
    """All of a path that is not hidden."""
    if any(path.is_relative_to(one) for one in hidden if one != _DEVICES):
        return
    if any(path in one.parents for one in hidden):
        yield from _beside(str(path), hidden)
    elif path != _DEVICES:
        yield str(path)


def closed_devices(uid: int) -> list[Path]:
    """The device files below /dev, but for disks and terminals, that this user cannot open.

    As a module that needs devices: of no group but those that it keeps of its daemon's.
    """
    groups, closed = _groups_of_devices(), list[Path]()
    for path in _devices(_DEVICES):
        found = path.stat()
        bits = found.st_mode & 0o007
        if found.st_gid in groups:
            bits = found.st_mode >> 3 & 0o007
        if found.st_uid == uid:
            bits = found.st_mode >> 6 & 0o007
        is_device = stat.S_ISCHR(found.st_mode) and os.major(found.st_rdev) not in _NOT_TOLD
        if is_device and not bits & 0o004:
            closed.append(path)
    return closed


def _groups_of_devices() -> set[int]:
    """The groups that the daemon was given for devices: those of no disk, and not root's."""
    own = {*os.getgroups()} - {0, os.getegid()}
    disks = {one.stat().st_gid for one in _DEVICES.iterdir() if one.is_block_device()}
    return own - disks


def _devices(folder: Path) -> Iterator[Path]:
    """The device files that are no disks."""
    for one in sorted(folder.iterdir()):
        mode = one.lstat().st_mode
        if stat.S_ISDIR(mode):
            yield from _devices(one)
        elif not stat.S_ISBLK(mode) and not stat.S_ISLNK(mode):
            yield one


def _allow(ruleset: int, path: Path | str, rights: int) -> None:
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
