"""Which moves can be made in a state: looked up for a few variables at a time."""

from collections.abc import Iterator, Sequence
from typing import Final

from haptera.core.word import Field, Grounds, Move

# A move as a plain tuple: the loop over these is where a search spends its time.
Row = tuple[int, int, int, int, tuple[Grounds, ...], Move]

# Ways in which the variables of one look-up can stand, at the most.
PLACES_MAX: Final = 512


class Openings:
    """Which rows no bit of a state forbids.

    What a few variables forbid together depends on these alone: it is noted, a bit for each row,
    when they are first found to stand so.
    """

    def __init__(self, rows: Sequence[Row], fields: Sequence[Field]) -> None:
        self._rows = {1 << number: row for number, row in enumerate(rows)}
        self._all = (1 << len(rows)) - 1
        self._noted: list[tuple[int, dict[int, int]]] = [(span, {}) for span in _spans(fields)]

    def rows(self, state: int) -> list[Row]:
        """Those that can be made, in order."""
        left, found = self.marks(state), []
        while left:
            first = left & -left
            left ^= first
            found.append(self._rows[first])
        return found

    def marks(self, state: int) -> int:
        """A bit for each that can be made: the lowest is the first."""
        left = self._all
        for span, noted in self._noted:
            here = state & span
            left &= ~(noted[here] if here in noted else self._note(noted, here))
        return left

    def _note(self, noted: dict[int, int], here: int) -> int:
        forbidden = 0
        for mark, row in self._rows.items():
            if row[0] & here:
                forbidden |= mark
        noted[here] = forbidden
        return forbidden


def _spans(fields: Sequence[Field]) -> Iterator[int]:
    """The bits of variables, some together."""
    span, places = 0, 1
    for field in fields:
        here = 4 * field.width + 1  # Remembered ones may be in doubt.
        if places * here > PLACES_MAX:
            yield span
            span, places = 0, 1
        span |= field.span
        places *= here
    yield span
