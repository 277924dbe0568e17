"""Root's powers that a process keeps, with all that it starts (Linux, capabilities(7))."""

import contextlib
import ctypes
import os
from collections.abc import Collection, Iterable
from enum import IntEnum
from pathlib import Path
from struct import Struct
from typing import Final

from haptera.model.parts import Privilege


class Capability(IntEnum):
    """Those that are ever kept, by their numbers."""

    CHOWN = 0
    DAC_OVERRIDE = 1
    FOWNER = 3
    FSETID = 4
    KILL = 5
    SETGID = 6
    SETUID = 7
    SETPCAP = 8
    NET_BIND_SERVICE = 10
    NET_ADMIN = 12
    NET_RAW = 13
    IPC_LOCK = 14
    SYS_CHROOT = 18
    SYS_PTRACE = 19
    SYS_ADMIN = 21
    SYS_NICE = 23
    SYS_RESOURCE = 24
    SYS_TIME = 25
    MKNOD = 27
    LEASE = 28
    AUDIT_WRITE = 29
    SETFCAP = 31


# What programs that a node's root starts usually need. Not among it: what reaches around hidden
# files (mounts, new device files, another process' memory), and what changes the kernel.
_ROOT: Final = frozenset(Capability) - {
    Capability.SYS_ADMIN,
    Capability.SYS_PTRACE,
    Capability.MKNOD,
}
_OF: Final = {
    Privilege.PORTS: frozenset({Capability.NET_BIND_SERVICE}),
    Privilege.RAW_SOCKETS: frozenset({Capability.NET_RAW}),
    Privilege.DEVICES: frozenset[Capability](),
    Privilege.ROOT: _ROOT,
    Privilege.NAMESPACES: frozenset(Capability),  # of a user namespace of its own
    # A process that may mount has ways around this, which change the node, too (the threat model).
    Privilege.MOUNTS: frozenset(Capability) - {Capability.SYS_PTRACE},
}

_PR_CAPBSET_DROP: Final = 24
_PR_SET_KEEPCAPS: Final = 8
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_VERSION_3: Final = 0x20080522
_HEADER: Final = Struct("=Ii")
# Effective, permitted and inheritable, of the lower 32 and then of the upper ones.
_SETS: Final = Struct("=6I")
_WORD: Final = (1 << 32) - 1
_LAST: Final = Path("/proc/sys/kernel/cap_last_cap")
_libc = ctypes.CDLL(None, use_errno=True)


def of_needs(needs: Iterable[Privilege]) -> frozenset[Capability]:
    """What is kept by a process of root that needs this."""
    return frozenset[Capability]().union(*(_OF[need] for need in needs))


def keep(kept: Collection[Capability], uid: int | None, groups: Collection[int] = ()) -> None:
    """Have no other capability from now on, as this user of these groups, where one is given.

    It is root who calls this; of what it does not have itself, nothing is kept.

    Raises:
        OSError: it cannot be; then the process must not go on.
    """
    # One who may not (root in some containers) has no_new_privs to rest on, or gives up nothing.
    with contextlib.suppress(PermissionError):
        for number in range(int(_LAST.read_bytes()) + 1):
            if number not in kept:
                _prctl(_PR_CAPBSET_DROP, number)
    if uid is not None:
        _prctl(_PR_SET_KEEPCAPS, 1)
        os.setgroups(sorted(groups))
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    mask = sum(1 << one for one in kept) & _permitted()
    _set(mask)
    for one in kept:
        if uid is not None and mask & 1 << one:
            _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, one)  # for a program that it becomes


def _permitted() -> int:
    header, sets = _HEADER.pack(_VERSION_3, 0), ctypes.create_string_buffer(_SETS.size)
    _check(_libc.capget(header, sets))
    _, lower, _, _, upper, _ = _SETS.unpack(sets.raw)
    return int(lower | upper << 32)


def _set(mask: int) -> None:
    words = [mask & _WORD] * 3 + [mask >> 32] * 3
    _check(_libc.capset(_HEADER.pack(_VERSION_3, 0), _SETS.pack(*words)))


def _prctl(option: int, first: int, second: int = 0) -> None:
    _check(_libc.prctl(option, first, second, 0, 0))


def _check(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
