"""Which sequences were accepted: each once, and none far below the highest."""

from typing import Final

WINDOW_BITS: Final = 1024
_MASK: Final = (1 << WINDOW_BITS) - 1


class Window:
    """The last `WINDOW_BITS` sequences of one sender, as RFC 6479 means it; 0 is no sequence."""

    __slots__ = ("_accepted", "highest")

    def __init__(self) -> None:
        self.highest = 0
        # Bit n: the sequence n below the highest.
        self._accepted = 0

    def is_fresh(self, sequence: int) -> bool:
        """Whether it may still be accepted; looking changes nothing."""
        if sequence > self.highest:
            return True
        below = self.highest - sequence
        return sequence > 0 and below < WINDOW_BITS and not self._accepted >> below & 1

    def commit(self, sequence: int) -> None:
        """Note an authentic sequence, which must be fresh."""
        assert self.is_fresh(sequence)
        if sequence > self.highest:
            ahead = min(sequence - self.highest, WINDOW_BITS)
            self._accepted = (self._accepted << ahead & _MASK) | 1
            self.highest = sequence
        else:
            self._accepted |= 1 << self.highest - sequence
