"""What takes long, done a piece at a time: in between others have their turn."""

from collections.abc import Generator
from typing import TypeVar

Whole = TypeVar("Whole")

# Gives after each piece what it has cost, in moves that a search could try; the whole in the end.
Pieces = Generator[int, None, Whole]


def at_once(pieces: Pieces[Whole]) -> Whole:
    """The whole, where nothing waits for it."""
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            whole: Whole = done.value
            return whole
