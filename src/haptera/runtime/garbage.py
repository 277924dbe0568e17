"""Keeps Python's garbage collector from walking all there is: a large process has no time for that.

A full collection looks for cycles in all objects that are not frozen, and nothing else runs
meanwhile: 100 ms in a parent of 10,000 nodes. `docs/decisions/0015-old-objects-are-frozen.md`.
"""

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

# How many new objects, times that, times that lead to a collection of each generation: a full one
# looks at some 25,000 objects, which takes 10 ms.
THRESHOLDS: Final = (700, 10, 1)
# So many more blocks of memory, some 400 MB, and all is looked at once: old cycles are freed.
BLOCKS_MORE_MAX: Final = 4_000_000
_OLDEST: Final = 2


@contextmanager
def old_objects_frozen(blocks_more_max: int = BLOCKS_MORE_MAX) -> Iterator[None]:
    """Meanwhile what a full collection leaves is frozen: the next looks only at what came since.

    Where nothing was collected until now, what there is is taken for what one would have left.
    What is frozen and in no cycle is freed as ever, when nobody needs it any more.
    """
    thresholds, freezing = gc.get_threshold(), _Freezing(blocks_more_max)
    gc.callbacks.append(freezing.heard)
    if gc.isenabled():
        gc.collect()
        # Python puts a full collection off until a quarter as many objects have come as the last
        # one left, frozen or not: one more leaves none.
        gc.collect()
    else:
        gc.freeze()
        gc.enable()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(freezing.heard)
        gc.unfreeze()


class _Freezing:
    """What becomes of that which a full collection leaves."""

    def __init__(self, blocks_more_max: int) -> None:
        self._more_max = blocks_more_max
        self._blocks_max: int | None = None  # None: this collection looks at all there is

    def heard(self, phase: str, collection: Mapping[str, int]) -> None:
        """A collection begins or ends."""
        if phase != "stop" or collection["generation"] != _OLDEST:
            return
        blocks = sys.getallocatedblocks()
        if self._blocks_max is None:
            self._blocks_max = blocks + self._more_max
        if blocks <= self._blocks_max:
            gc.freeze()
        else:
            gc.unfreeze()
            self._blocks_max = None
