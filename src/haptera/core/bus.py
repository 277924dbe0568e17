"""Who has heard of which change: numbered, in order, kept for those who come back."""

from collections import deque

from haptera.model.entity import EntityId

# Changes kept for listeners that are behind; who is further behind takes a snapshot.
KEPT_MAX = 10_000


class Bus:
    """Published changes by number; `epoch` is new for each process, as the numbers are."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.last = 0
        self._kept: deque[tuple[EntityId, ...]] = deque(maxlen=KEPT_MAX)

    def publish(self, entities: tuple[EntityId, ...]) -> int:
        """Number a change and keep it."""
        self.last += 1
        self._kept.append(entities)
        return self.last

    def since(self, number: int) -> list[tuple[EntityId, ...]] | None:
        """The changes after this one, oldest first; None where some are not kept any more.

        >>> bus = Bus(epoch=1)
        >>> bus.publish(()), bus.since(0), bus.since(1), bus.since(2)
        (1, [()], [], None)
        """
        missed = self.last - number
        if not 0 <= missed <= len(self._kept):
            return None
        return [self._kept[index] for index in range(len(self._kept) - missed, len(self._kept))]
