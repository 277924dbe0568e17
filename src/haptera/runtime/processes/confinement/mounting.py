"""Hiding folders from a process of root by mounts of its own, which it must not be able to undo.

Landlock would have it make nothing in any folder above what is hidden, as in /run, and programs of
a node do; and it lets nobody mount. Who loses the capability to mount afterwards finds empty
folders there for ever; so does who has it in a user namespace of its own only, where the kernel
lets nobody undo what was mounted outside (user_namespaces(7), mount_namespaces(7)).
"""

import ctypes
import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import Final

_NEW_NAMESPACE: Final = 0x0002_0000
_NEW_USERS: Final = 0x1000_0000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _ONE_WAY = 0x1, 0x20, 0x1000, 0x4000, 0x80000
_MOUNT_SETATTR: Final = 442  # Linux 5.12
_HERE: Final = -100
_ALL_BELOW: Final = 0x8000
_NOT_WRITTEN, _NO_DEVICES, _NO_PROGRAMS = 0x1, 0x4, 0x8
_ATTRIBUTES: Final = Struct("=4Q")  # to set, to clear, how mounts spread, a user namespace
_libc = ctypes.CDLL(None, use_errno=True)


def hide(hidden: Collection[Path], kept: Iterable[Path]) -> None:
    """Have these folders be empty from now on, but for those within them that are kept.

    What the machine mounts later is seen here too; what is mounted here is seen nowhere else.

    Raises:
        OSError: this process may not mount.
    """
    _check(_libc.unshare(_NEW_NAMESPACE))
    _mount("none", Path("/"), "", _RECURSIVE | _ONE_WAY)
    held = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in kept}
    for folder in hidden:
        _mount("tmpfs", folder, "tmpfs", 0, "size=64k,mode=711")
    for path, descriptor in held.items():
        path.mkdir(parents=True, exist_ok=True)
        _mount(f"/proc/self/fd/{descriptor}", path, "", _BIND | _RECURSIVE)
        os.close(descriptor)
    for folder in hidden:
        _mount("tmpfs", folder, "", _REMOUNT | _READ_ONLY)


def stack(layers: Iterable[Path], place: Path) -> None:
    """Mount these at a place as one folder that nobody writes; what is in several, of the first.

    Raises:
        OSError: this process may not mount.
    """
    # By numbers, for names may hold what parts them.
    held = [os.open(one, os.O_PATH | os.O_CLOEXEC) for one in layers]
    lower = ":".join(f"/proc/self/fd/{one}" for one in held)
    _mount("overlay", place, "overlay", _READ_ONLY, f"lowerdir={lower}")
    for one in held:
        os.close(one)


def allow_programs(place: Path) -> None:
    """Have programs be run that lie in this mount, whatever it was mounted with."""
    _change(place, remove=_NO_PROGRAMS)


def close(place: Path) -> None:
    """Have nothing be written there any more, nor in what is mounted below, if it is there."""
    if place.is_mount():
        _change(place, add=_NOT_WRITTEN)


def enclose(hidden: Collection[Path], kept: Collection[Path], written: Collection[Path]) -> None:
    """Hide as above, have nothing else be written, and be in a user namespace of its own.

    There every user is who it is outside, for files, and this process may mount; outside it has no
    capability. Of device files it opens only those that are among what is `written`.

    Raises:
        OSError: this process may not mount, or have user namespaces.
    """
    with _mapping() as map_users:
        hide(hidden, kept)
        written = [*written, *kept]
        for path in written:
            if not path.exists():
                path.mkdir(parents=True)
            if not path.is_mount():
                _mount(str(path), path, "", _BIND | _RECURSIVE)
        _change(Path("/"), add=_NOT_WRITTEN | _NO_DEVICES)
        for path in written:
            is_device = path.is_char_device() or path.is_relative_to("/dev/pts")
            _change(path, remove=_NOT_WRITTEN | _NO_DEVICES * is_device)
        _check(_libc.unshare(_NEW_USERS | _NEW_NAMESPACE))
        map_users()


@contextmanager
def _mapping() -> Iterator[Callable[[], None]]:
    """What has each user be the same in this process' new user namespace as outside.

    Only a process that is outside may say so: a child, which still writes in /proc.
    """
    ours, theirs = os.pipe()
    done, doing = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(theirs)
        _map_when_told(parent, ours, doing)
    os.close(ours)
    os.close(doing)

    def map_users() -> None:
        os.write(theirs, b"x")
        if not os.read(done, 1):
            raise OSError(errno.EPERM, "users cannot be mapped")

    try:
        yield map_users
    finally:
        os.close(theirs)
        os.close(done)
        os.waitpid(child, 0)


def _map_when_told(process: int, told: int, doing: int) -> None:
    """Map all users and groups that this process has; a process of its own, which ends."""
    try:
        if os.read(told, 1):
            for name in ("uid_map", "gid_map"):
                known = Path(f"/proc/self/{name}").read_text(encoding="ascii")
                ranges = (map(int, line.split()) for line in known.splitlines())
                same = "".join(_same(inside, count) for inside, _, count in ranges)
                Path(f"/proc/{process}/{name}").write_text(same, encoding="ascii")
            os.write(doing, b"x")
    finally:
        os._exit(0)


def _same(first: int, count: int) -> str:
    """The lines that map these to themselves.

    Two, for programs (runc, buildah) take one line of all users for the machine's own namespace,
    and would make device files.
    """
    half = count // 2
    parts = ((first, half), (first + half, count - half))
    return "".join(f"{begin} {begin} {many}\n" for begin, many in parts if many)


def _mount(source: str, target: Path, sort: str, flags: int, data: str = "") -> None:
    texts = (source.encode(), os.fsencode(target), sort.encode())
    _check(_libc.mount(*texts, ctypes.c_ulong(flags), data.encode()))


def _change(place: Path, *, add: int = 0, remove: int = 0) -> None:
    """Have all that is mounted at a place and below it be with these attributes, or without."""
    wanted = _ATTRIBUTES.pack(add, remove, 0, 0)
    words = (_HERE, os.fsencode(place), _ALL_BELOW, wanted, len(wanted))
    _check(_libc.syscall(_MOUNT_SETATTR, *words))


def _check(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
