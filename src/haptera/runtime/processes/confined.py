"""Runs one command of other software with less rights than the daemon's: a program of its own.

What such a command loads (plug-ins that a configuration names, say) must not have what the daemon
has. It is no function to be called between fork and exec, for daemons have threads.
"""

import os
import pwd
import shutil
import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from haptera.runtime.processes.confinement import capabilities
from haptera.runtime.processes.confinement.confinement import hide_from_now_on
from haptera.runtime.processes.zygote import die_with

# As shells say that a command cannot be run, or is not there.
CANNOT, MISSING = 126, 127
MODULE: Final = "haptera.runtime.processes.confined"


class Rights(msgspec.Struct, frozen=True):
    """As whom a command runs, None: as who starts it; what it reaches in no case, and what it must.

    Where it cannot read that, it is not run: it might say less of it, or wait for ever.
    """

    hidden: tuple[str, ...]
    reads: tuple[str, ...] = ()
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()


def confined_words(
    hidden: Sequence[str], user: pwd.struct_passwd | None, reads: Sequence[str] = ()
) -> tuple[str, ...]:
    """The prefix that runs a command as this user, with no access to the paths in `hidden`."""
    rights = Rights(tuple(hidden), tuple(reads))
    if user is not None and user.pw_uid != os.geteuid():
        groups = tuple(os.getgrouplist(user.pw_name, user.pw_gid))
        rights = Rights(rights.hidden, rights.reads, user.pw_uid, user.pw_gid, groups)
    return sys.executable, "-P", "-m", MODULE, msgspec.json.encode(rights).decode()


def main() -> None:
    """Give up what is not needed, and become the command."""
    rights = msgspec.json.decode(sys.argv[1], type=Rights)
    command, is_root = sys.argv[2:], os.geteuid() == 0
    try:
        _give_up(rights, is_root=is_root)
    except OSError as error:
        _end(CANNOT, f"it cannot be confined: {error.strerror}")
    for path in rights.reads:
        if not os.access(path, os.R_OK):
            _end(CANNOT, f"user {_who()} cannot read {path}, or a folder on the way to it")
    # Here, for one that is in no folder that may be searched would be "not permitted" to exec.
    if shutil.which(command[0]) is None:
        _end(MISSING, f"{command[0]}: No such file or directory")
    try:
        os.execvp(command[0], command)
    except OSError as error:
        _end(CANNOT, f"{command[0]}: {error.strerror}")


def _give_up(rights: Rights, *, is_root: bool) -> None:
    parent = os.getppid()
    is_hidden = hide_from_now_on(rights.hidden)
    if rights.uid is not None and rights.gid is not None:
        os.setgroups(rights.groups)
        os.setresgid(rights.gid, rights.gid, rights.gid)
        os.setresuid(rights.uid, rights.uid, rights.uid)
    elif is_root and not is_hidden:
        _end(CANNOT, "this kernel has no Landlock, so root reaches all: name another user")
    elif is_root:
        capabilities.keep((), None)
    die_with(parent)


def _who() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # A user that the machine has no name for.
        return str(os.geteuid())


def _end(status: int, text: str) -> None:
    sys.stderr.write(f"{text}\n")
    raise SystemExit(status)


if __name__ == "__main__":
    main()
