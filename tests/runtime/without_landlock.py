"""`python -m tests.runtime.without_landlock COMMAND...`: run it as on a kernel without Landlock."""

import ctypes
import errno
import os
import sys
from struct import pack

CREATE_RULESET = 444
SET_SECCOMP, FILTER = 22, 2
LOAD_NUMBER, SKIP_UNLESS_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF_0000, 0x0005_0000

if __name__ == "__main__":
    program = b"".join(
        pack("=HBBI", *one)
        for one in (
            (LOAD_NUMBER, 0, 0, 0),
            (SKIP_UNLESS_EQUAL, 0, 1, CREATE_RULESET),
            (RETURN, 0, 0, FAIL | errno.ENOSYS),
            (RETURN, 0, 0, ALLOW),
        )
    )
    held = ctypes.create_string_buffer(program)
    told = ctypes.create_string_buffer(pack("HP", len(program) // 8, ctypes.addressof(held)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(SET_SECCOMP, FILTER, told):  # as root only
        sys.exit(os.strerror(ctypes.get_errno()))
    os.execvp(sys.argv[1], sys.argv[1:])
