"""Finds a knowable state with given properties, and what a move makes of it.

Never all states: dependents first, it chooses what each variable's being known, or its being
forgotten by the move, rests on, and so narrows the variables below. What need not be known is left
unknown: whatever shows a fault then shows it with the least that must be so.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Final

from haptera.planner.domain.bitsets import each
from haptera.planner.domain.bitstate import Field, Operator, Support
from haptera.planner.domain.domain import Domain

# Choices that one question may take.
CHOICES_MAX: Final = 500
# What it costs for each variable to see what one choice leaves, in moves that a search could try.
LEAVING: Final = 50


class TooLargeError(Exception):
    """The question is not answered: it would take too many choices, or too many classes."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A stripped state, and the one that the move leads to (the same, where there is none)."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class _Open:
    """The bits that each variable may still have, in the state and in the one after the move."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class _Basis:
    """A look as a ground: what it yields, what forbids it, and each variable that can forbid it."""

    yields: int
    forbidden: int
    wholes: tuple[int, ...]


@dataclass(frozen=True)
class _Layer:
    """A variable and the looks that it can be known by; None: it is known without any."""

    field: Field
    looks: tuple[_Basis, ...] | None

    @cached_property
    def hidden(self) -> int:
        """The bits with which it is not known."""
        return self.field.whole & ~self.field.known


class Witnesses:
    """The states of one class, to be searched for one with given properties.

    All questions together may take `choices_max` choices; one of them CHOICES_MAX. What they cost
    is counted as `work`, in moves that a search could try.
    """

    def __init__(self, domain: Domain, choices_max: int) -> None:
        self.domain = domain
        self.choices_left = choices_max
        self.work = 0
        fields = dict(domain.fields)
        rising = [_layer(domain, fields.pop(one.variable), one) for one in domain.grounds]
        # Each variable before all that knowing it rests on; those that are always known last.
        self._layers = (*rising[::-1], *(_Layer(field, looks=None) for field in fields.values()))

    def find(self, before: int, move: Operator | None = None, after: int = -1) -> Witness | None:
        """A state of these bits from which the move leads to one of those; None: there is none.

        Raises:
            TooLargeError: it takes too long to tell.
        """
        if move is not None:
            before &= ~move.forbidden
        floor = max(0, self.choices_left - CHOICES_MAX)
        ways = [(0, _Open(before, after))]
        tried = set(ways)
        while ways:
            number, drawn = ways.pop()
            self.work += LEAVING * len(self._layers)
            left = _forced(self._layers[number:], drawn, move)
            if left is None:
                continue
            number, onward = self._choices(number, left, move)
            if onward is None:
                return _filled(self.domain, left, move)
            self.choices_left -= len(onward) - 1
            if self.choices_left < floor:
                raise TooLargeError
            ways += [(number, one) for one in onward if (number, one) not in tried]
            tried.update((number, one) for one in onward)
        return None

    def _choices(
        self, number: int, left: _Open, move: Operator | None
    ) -> tuple[int, list[_Open] | None]:
        """The ways to go at the next variable, from a number on, that leaves one, and the number.

        None where no variable does.
        """
        for above, layer in enumerate(self._layers[number:], start=number + 1):
            whole = layer.field.whole
            if left.after & whole == whole and left.before & layer.hidden:
                continue  # It does not matter how it stands.
            onward = list(_narrowed(layer, left, move))
            if onward != [left]:
                return above, onward
        return len(self._layers), None


def _layer(domain: Domain, field: Field, grounds: Support) -> _Layer:
    wholes = [one.whole for one in domain.fields.values()]
    looks = [
        _Basis(yields, forbidden, tuple(whole for whole in wholes if whole & forbidden))
        for yields, forbidden in grounds.looks
    ]
    return _Layer(field, tuple(looks))


def _forced(layers: Sequence[_Layer], left: _Open, move: Operator | None) -> _Open | None:
    """What is left once all that is without choice was chosen; None: nothing is."""
    before, after, last = left.before, left.after, None
    put = 0 if move is None else move.put
    while last != (before, after):
        last = before, after
        for layer in layers:
            if before & layer.hidden and after & layer.hidden:
                continue  # Neither before nor after need it be known.
            whole = layer.field.whole
            if not after & layer.hidden:
                if not put & whole:
                    before &= after | ~whole  # What a move leaves alone was so before.
                elif not put & after & whole:
                    return None
                after = _supporting(layer, after)
            if not before & layer.hidden:
                before = _supporting(layer, before)
            if not before & whole or not after & whole:
                return None
    return _Open(before, after)


def _supporting(layer: _Layer, left: int) -> int:
    """What is left where a variable must be known; where one look only can be its ground, that."""
    if layer.looks is None:
        return left
    field = layer.field
    open_ = [
        look
        for look in layer.looks
        if look.yields & left & field.known
        and all(left & ~look.forbidden & whole for whole in look.wholes)
    ]
    known = reduce(or_, (look.yields for look in open_), 0)
    left &= ~field.whole | known
    return left & ~open_[0].forbidden if len(open_) == 1 else left


def _narrowed(layer: _Layer, left: _Open, move: Operator | None) -> Iterator[_Open]:
    """All ways in which the variable can stand, the one that needs least last."""
    field = layer.field
    here = left.before & field.whole
    put = 0 if move is None else move.put & field.whole
    for known in _alike(layer, here & field.known):
        for below in _supported(layer, known, left.before):
            chosen = _Open(below & ~field.whole | known, left.after)
            yield from _onward(layer, chosen, put or known, kept=not put)
    if hidden := here & ~field.known:
        chosen = _Open(left.before & ~field.known, left.after)
        yield from _onward(layer, chosen, put or hidden, kept=not put)


def _onward(layer: _Layer, chosen: _Open, held: int, *, kept: bool) -> Iterator[_Open]:
    """How what is held when the move was made can stand after the strip.

    What is `kept` by the move is held before it, too.
    """
    field = layer.field
    wanted = chosen.after & field.whole
    if wanted == field.whole:
        yield chosen
        return
    for one in each(held & field.known & wanted >> field.width):
        for after in _unsupported(layer, one, chosen.after):
            yield _Open(_held(chosen.before, field, one) if kept else chosen.before, after)
    if fit := held & wanted:
        before = _held(chosen.before, field, fit) if kept else chosen.before
        for after in _supported(layer, fit, chosen.after):
            yield _Open(before, after)


def _held(state: int, field: Field, bits: int) -> int:
    return state & (~field.whole | bits)


def _alike(layer: _Layer, known: int) -> Iterable[int]:
    """The known values, those that the same looks find put together."""
    groups: dict[tuple[int, ...], int] = {}
    for one in each(known):
        found = tuple(number for number, look in enumerate(layer.looks or ()) if look.yields & one)
        groups[found] = groups.get(found, 0) | one
    return groups.values()


def _supported(layer: _Layer, values: int, left: int) -> Iterator[int]:
    """What is left by each look that lets one know these values, which need none where hidden."""
    if layer.looks is None or not values & layer.field.known:
        yield left
        return
    for look in layer.looks:
        if values & look.yields:
            yield left & ~look.forbidden


def _unsupported(layer: _Layer, known: int, left: int) -> Iterable[int]:
    """What is left by each way to shut all looks that let one know this value."""
    if layer.looks is None:
        return ()
    ways = [left]
    for look in layer.looks:
        if known & look.yields:
            shut = {way & (~whole | look.forbidden) for way in ways for whole in look.wholes}
            ways = sorted(shut)
            if len(ways) > CHOICES_MAX:
                raise TooLargeError
    return ways


def _filled(domain: Domain, left: _Open, move: Operator | None) -> Witness:
    """One of the states that are left, with as little known and remembered as may be."""
    before = 0
    for field in domain.fields.values():
        bits = left.before & field.whole
        bits = bits & field.unknown or bits & ~field.known or bits
        before |= bits & -bits
    if move is None:
        return Witness(before, before)
    after = domain.strip(before & move.keep | move.put) & ~domain.touched
    return Witness(before, after)
