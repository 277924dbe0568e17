"""A replica that appends a line to a file for as long as it leads: what its effects look like."""

import os
import sys
import time  # noqa: TID251  a program of its own

from haptera.app import Fence, GroupReplica, NotLeaderError, StaleEpochError

EVERY_S = 0.01


def main(effects: str) -> None:
    """Act while leading, wait while not."""
    replica = GroupReplica.of_environment()
    fence, number = Fence(f"{effects}.epoch"), 0
    while True:
        epoch = replica.await_lead()
        try:
            with replica.leading() as epoch, fence.passed(epoch):
                number += 1
                who = f"{replica.rank} {replica.node} {replica.placement}.{replica.starts}"
                append(effects, f"{time.monotonic_ns()} {epoch} {who} {os.getpid()} {number}\n")
        except (NotLeaderError, StaleEpochError) as refused:
            print(refused, flush=True)  # noqa: T201
        time.sleep(EVERY_S)


def append(path: str, line: str) -> None:
    """One line, in one write."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main(sys.argv[1])
