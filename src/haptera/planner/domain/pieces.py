"""Long work in pieces: generators that yield between slices, so that others have their turn."""

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import TypeVar

Whole = TypeVar("Whole")
One = TypeVar("One")

# Gives after each piece what it has cost, in moves that a search could try; the whole in the end.
Pieces = Generator[int, None, Whole]


def slices(many: Iterable[One], count: int) -> Iterator[list[One]]:
    """So many at a time, in their order; none is asked for before its slice is.

    >>> [*slices("abcde", 2)]
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    left = iter(many)
    while some := list(islice(left, count)):
        yield some


def at_once(pieces: Pieces[Whole]) -> Whole:
    """The whole, where nothing waits for it."""
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            whole: Whole = done.value
            return whole
