"""`haptera`, telling as it ends at how many objects a full collection has looked at the most.

Of those after the signal SIGUSR1.
"""

import gc
import signal
import sys
from collections.abc import Mapping

from haptera.__main__ import main

looked_at = 0


def heard(phase: str, collection: Mapping[str, int]) -> None:
    global looked_at
    if (phase, collection["generation"]) == ("start", 2):
        looked_at = max(looked_at, len(gc.get_objects()))


def begin(*_: object) -> None:
    global looked_at
    looked_at = 0


if __name__ == "__main__":
    gc.callbacks.append(heard)
    signal.signal(signal.SIGUSR1, begin)
    try:
        main()
    finally:
        sys.stdout.write(f"{looked_at}\n")
