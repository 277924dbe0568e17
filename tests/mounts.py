"""Mounts of tests are seen by the tests' own processes alone, and end with the last of them."""

import ctypes
import os

CLONE_NEWNS = 0x0002_0000
MS_REC, MS_SLAVE = 0x4000, 0x8_0000


def keep_private() -> None:
    """Move into a mount namespace of our own; who may not, may not mount either."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) == 0 and libc.mount(b"none", b"/", None, MS_REC | MS_SLAVE, None):
        raise OSError(ctypes.get_errno(), "mounts would be everybody's")


def is_private() -> bool:
    """True if what is mounted here is hidden from the process that started the tests."""
    return os.readlink("/proc/self/ns/mnt") != os.readlink(f"/proc/{os.getppid()}/ns/mnt")
