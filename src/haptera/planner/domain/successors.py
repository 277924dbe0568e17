"""The successor generator: which operators are applicable in a state.

Helmert, "The Fast Downward Planning System", JAIR 26, 2006, section 5.3.1; here as bit masks for a
few variables at a time.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Final

from haptera.planner.domain.bitsets import transposed
from haptera.planner.domain.bitstate import Field, Operator, Support

# A move as a plain tuple: the loop over these is where a search spends its time.
OperatorRow = tuple[int, int, int, int, tuple[Support, ...], Operator]

# Ways in which the variables of one look-up can stand, at the most.
PLACES_MAX: Final = 512


class SuccessorGenerator:
    """Which rows no bit of a state forbids.

    What a few variables forbid together depends on these alone: it is noted, a bit for each row,
    when they are first found to stand so. A variable of many values has all of its noted then.
    """

    def __init__(self, rows: Sequence[OperatorRow], fields: Sequence[Field]) -> None:
        self._rows = {1 << number: row for number, row in enumerate(rows)}
        self._all = (1 << len(rows)) - 1
        together = [reduce(or_, (field.span for field in some)) for some in _together(fields)]
        self._noted: list[tuple[int, dict[int, int]]] = [(span, {}) for span in together]
        self._wide = {field.span: field for field in fields if _places(field) > PLACES_MAX}

    def rows(self, state: int) -> list[OperatorRow]:
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
            left &= ~(noted[here] if here in noted else self._note(span, noted, here))
        return left

    def _note(self, span: int, noted: dict[int, int], here: int) -> int:
        if span in self._wide:
            noted.update(self._all_noted(self._wide[span]))
        else:
            noted[here] = self._forbidden(here)
        return noted[here]

    def _forbidden(self, bits: int) -> int:
        forbidden = 0
        for mark, row in self._rows.items():
            if row[0] & bits:
                forbidden |= mark
        return forbidden

    def _all_noted(self, field: Field) -> Iterator[tuple[int, int]]:
        """What a variable forbids, however it stands."""
        lowest, touched = field.lowest.bit_length() - 1, self._forbidden(field.touched)
        each = [(row[0] & field.whole) >> lowest for row in self._rows.values()]
        for bit, forbidden in zip(field.bits, transposed(each, len(field.bits)), strict=True):
            yield bit, forbidden
            yield bit | field.touched, forbidden | touched


def _together(fields: Sequence[Field]) -> Iterator[list[Field]]:
    """Variables that are looked up together: as many as do not stand in too many ways."""
    some: list[Field] = []
    places = 1
    for field in fields:
        if some and places * _places(field) > PLACES_MAX:
            yield some
            some, places = [], 1
        some.append(field)
        places *= _places(field)
    if some:
        yield some


def _places(field: Field) -> int:
    """In how many ways a variable can stand; remembered, it may be in doubt."""
    return 4 * field.width + 1
