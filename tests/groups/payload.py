"""A replica that writes down each start, and each effect while it leads: what tests look at.

It makes `starts`, `effects` and what was `refused` to it in the folder that it is given, a line
each, and ends at once while a file `broken` is there. While a file `PID.waits` is there it stops
between its look at the lease and its act, and makes `PID.about` then.
"""

import os
import sys
import time

from haptera.app import Fence, GroupReplica, NotLeaderError, StaleEpochError
from haptera.app.lease import start_time

EVERY_S = 0.01


def main(folder: str) -> None:
    replica = GroupReplica.of_environment()
    who = f"{replica.rank} {replica.node} {replica.placement}.{replica.starts} {os.getpid()}"
    append(f"{folder}/{replica.group}.starts", f"{who} {start_time(os.getpid())}")
    if os.path.exists(f"{folder}/{replica.group}.broken"):
        sys.exit("it is broken")
    fence, number = Fence(f"{folder}/{replica.group}.epoch"), 0
    while True:
        try:
            with replica.leading() as epoch:
                wait(f"{folder}/{os.getpid()}")
                with fence.passed(epoch):
                    number += 1
                    append(f"{folder}/{replica.group}.effects", f"{epoch} {who} {number}")
        except NotLeaderError:
            pass
        except StaleEpochError:
            append(f"{folder}/{replica.group}.refused", f"{os.getpid()}")
        time.sleep(EVERY_S)


def wait(name: str) -> None:
    while os.path.exists(f"{name}.waits"):
        append(f"{name}.about", "")
        time.sleep(EVERY_S)


def append(path: str, line: str) -> None:
    """In one write."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main(sys.argv[1])
