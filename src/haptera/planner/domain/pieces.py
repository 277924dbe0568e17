"""Long work in pieces: generators that yield between slices, so that others have their turn."""

from collections.abc import Generator, Iterator, Sequence
from typing import TypeVar

Whole = TypeVar("Whole")
One = TypeVar("One")

# Gives after each piece what it has cost, in moves that a search could try; the whole in the end.
Pieces = Generator[int, None, Whole]


def slices(many: Sequence[One], count: int) -> Iterator[Sequence[One]]:
    """So many at a time, in their order.

    >>> [*slices("abcde", 2)]
    ['ab', 'cd', 'e']
    """
    return (many[start : start + count] for start in range(0, len(many), count))


def at_once(pieces: Pieces[Whole]) -> Whole:
    """The whole, where nothing waits for it."""
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            whole: Whole = done.value
            return whole
