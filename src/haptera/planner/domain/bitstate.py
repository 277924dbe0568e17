"""States as one-hot bit words; operators and the support of knowledge as masks over them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

from haptera.model.chain import Link
from haptera.model.parts import Part


@dataclass(frozen=True, eq=False)
class Field:
    """Where a variable of k known values stands: k bits known, k remembered, one for unknown.

    One of them is set. `touched` lies above all fields and is set only inside a search: once a
    variable was changed or looked at, its memory is not doubted (semantics.md, Doubt).
    """

    name: str
    values: tuple[str, ...]
    lowest: int
    touched: int

    @cached_property
    def width(self) -> int:
        """How far a value's remembered bit lies above its known one."""
        return len(self.values) - 1

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {value: number for number, value in enumerate(self.values)}

    @cached_property
    def known(self) -> int:
        return (self.lowest << self.width) - self.lowest

    @cached_property
    def remembered(self) -> int:
        return self.known << self.width

    @cached_property
    def unknown(self) -> int:
        return self.lowest << 2 * self.width

    @cached_property
    def whole(self) -> int:
        return self.known | self.remembered | self.unknown

    @cached_property
    def bits(self) -> tuple[int, ...]:
        """All of these, one by one: the ways in which the variable can stand."""
        return tuple(self.lowest << number for number in range(2 * self.width + 1))

    @cached_property
    def span(self) -> int:
        """All bits of the variable, `touched` too."""
        return self.whole | self.touched

    def holding(self, values: Iterable[str]) -> int:
        """The states in which a value of these is known.

        Raises:
            ValueError: one is no value of this variable.
        """
        bits = 0
        for value in values:
            if value not in self._numbers:
                raise ValueError(f"{value!r} is no value of {self.name}")
            if number := self._numbers[value]:
                bits |= 1 << number - 1
        return bits * self.lowest

    def lacking(self, values: Iterable[str]) -> int:
        """The states in which nothing is known, where the values name the unknown."""
        return self.remembered | self.unknown if self.values[0] in values else 0

    def value(self, state: int) -> str | None:
        """The known value, if there is one."""
        held = state & self.known
        return self.values[(held // self.lowest).bit_length()] if held else None

    def memory(self, state: int) -> str | None:
        """The remembered value, if there is one."""
        return self.value(state >> self.width)


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """What knowing a variable rests on: for each look, what it yields and what forbids it.

    Excludes do not count. A variable that the module looks at, but not in this class, has none.
    """

    variable: str
    known: int
    width: int
    looks: tuple[tuple[int, int], ...]
    reads: int

    @property
    def loose(self) -> int:
        """The known values that can lose their grounds: each look at them requires something."""
        return self.known & ~reduce(or_, (yields for yields, closed in self.looks if not closed), 0)

    def reading(self, values: int) -> int:
        """The bits that a state may have in which one of these values (known bits) has grounds."""
        return reduce(or_, (~forbidden for yields, forbidden in self.looks if yields & values), 0)


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """One way that a part can go: `if not state & forbidden: after = state & keep | put`.

    A look has a move for each outcome that it may expect. `touches` spans the fields that are
    changed or looked at, `reads` all that the move depends on. `upsets` are the grounds
    that it may take away: strip by these.
    """

    link: Link
    forbidden: int
    keep: int
    put: int
    touches: int
    reads: int
    upsets: tuple[Support, ...] = ()

    @property
    def part(self) -> Part:
        return self.link.part


def strip(state: int, grounds: Iterable[Support]) -> int:
    """Remember what has no grounds left; these are in dependency order, so once through is all."""
    for one in grounds:
        if held := state & one.known:
            # As `is_grounded` says, which would take as long again to be called.
            for yields, forbidden in one.looks:
                if held & yields and not state & forbidden:
                    break
            else:
                state = state ^ held | held << one.width
    return state


def is_grounded(state: int, grounds: Support, value: int) -> bool:
    """Whether a look that can yield the value (its known bit) has what it requires."""
    for yields, forbidden in grounds.looks:  # noqa: SIM110 (a generator doubles a search's time)
        if value & yields and not state & forbidden:
            return True
    return False
