"""What can come about in a class, and where a variable can go from there, whatever else is so.

A value can come about where some part leads to it in a knowable state whose other values can come
about. Each variable is followed by itself, as though the others were at any time as that takes:
what is said to be out of reach is so, however the world helps.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Final

from haptera.model.chain import Do
from haptera.model.parts import Step
from haptera.planner.domain.bitsets import each
from haptera.planner.domain.bitstate import Field, Operator
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.problem import subjects
from haptera.planner.domain.witness import TooLargeError, Witness, Witnesses
from haptera.planner.search.transitive_closure import transitive_closure

# Choices that all questions about one class may take together.
CHOICES_CLASS_MAX: Final = 5_000


@dataclass(frozen=True, slots=True)
class _Gain:
    """Bits that come about where the move leads to a state of these bits."""

    move: Operator
    after: int
    bits: int


@dataclass(frozen=True, slots=True)
class Transition:
    """A move that brings a variable from one status to another, a bit each."""

    source: int
    move: Operator
    target: int


class Reachability:
    """A class, its states, and what can come about of them."""

    def __init__(self, domain: Domain, choices_max: int = CHOICES_CLASS_MAX) -> None:
        self.domain = domain
        self.states = Witnesses(domain, choices_max)
        # One for each part: the moves of a look differ only in what they find.
        self.moves = {move.part.path: move for move in reversed(domain.moves)}
        self._ways: dict[str, tuple[Transition, ...]] = {}
        self._reaches: dict[str, dict[int, int]] = {}

    @property
    def possible(self) -> int:
        """The bits of all that can come about.

        Raises:
            TooLargeError: that takes too long to tell.
        """
        if self._possible is None:
            raise TooLargeError
        return self._possible

    def find(self, before: int, move: Operator | None = None, after: int = -1) -> Witness | None:
        """A witness, of what can come about only.

        Raises:
            TooLargeError: it takes too long to tell.
        """
        return self.states.find(self.possible & before, move, after)

    def ways(self, field: Field) -> tuple[Transition, ...]:
        """How parts bring a variable from a status that can come about to others.

        Raises:
            TooLargeError: it takes too long to tell.
        """
        if field.name not in self._ways:
            moves = (move for move in self.domain.moves if move.touches & field.whole)
            self._ways[field.name] = tuple(one for move in moves for one in self._of(field, move))
        return self._ways[field.name]

    def reach(self, field: Field, start: int) -> int:
        """The statuses that a variable can come to from these, by parts and by being forgotten.

        Raises:
            TooLargeError: it takes too long to tell.
        """
        if field.name not in self._reaches:
            self._reaches[field.name] = self._reach(field)
        return reduce(or_, map(self._reaches[field.name].__getitem__, each(start)), 0)

    @cached_property
    def _possible(self) -> int | None:
        bits = _given(self.domain)
        pending, before = list(_gains(self.domain)), 0
        try:
            while bits != before:
                before = bits
                for gain in pending:
                    if gain.bits & ~bits and self.states.find(bits, gain.move, gain.after):
                        bits |= gain.bits
        except TooLargeError:
            return None
        return bits

    def _reach(self, field: Field) -> dict[int, int]:
        """For each status of a variable, those that it can come to."""
        sources = dict.fromkeys(field.bits, 0)
        for way in self.ways(field):
            sources[way.target] |= way.source
        if any(one.variable == field.name for one in self.domain.grounds):
            for bit in each(field.known):
                sources[bit << field.width] |= bit
        lowest = field.lowest.bit_length() - 1
        ways = [(bits >> lowest, number, 0) for number, bits in enumerate(sources.values())]
        found = transitive_closure(ways, len(sources))
        return {bit: found[number] << lowest for number, bit in enumerate(sources)}

    def _of(self, field: Field, move: Operator) -> Iterator[Transition]:
        put = move.put & field.whole
        ends = (put, put << field.width) if _can_be_lost(self.domain, field, move) else (put,)
        for source in each(self.possible & field.whole & ~move.forbidden):
            for end in ends:
                if self.find(~field.whole | source, move, ~field.whole | end):
                    yield Transition(source, move, end)


def _can_be_lost(domain: Domain, field: Field, move: Operator) -> bool:
    grounds = (one for one in domain.grounds if one.variable == field.name)
    return isinstance(move.link, Do) and any(one.loose & move.put for one in grounds)


def _given(domain: Domain) -> int:
    """What is so without any part: all unknown, and borrowed variables as they may be."""
    borrowed = domain.problem.borrowed
    return sum(
        field.whole if name in borrowed else field.unknown for name, field in domain.fields.items()
    )


def _gains(domain: Domain) -> Iterable[_Gain]:
    for move in domain.moves:
        for name in subjects(move.part):
            field = domain.fields[name]
            put = move.put & field.whole
            if put & field.known:
                yield _Gain(move, ~field.whole | put, put | put << field.width)
                yield _Gain(move, -1, put << field.width)
            else:
                yield _Gain(move, -1, put)
        if isinstance(move.part, Step) and move.part.fails_to is not None:
            field = domain.fields[subjects(move.part)[0]]
            inferred = field.holding((move.part.fails_to,))
            yield _Gain(move, -1, inferred | inferred << field.width)
