"""What problems are drawn with: hypothesis, which shrinks, or a seed, which is much faster."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Protocol, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

Value = TypeVar("Value")


class Dice(Protocol):
    @abstractmethod
    def number(self, least: int, most: int) -> int: ...

    @abstractmethod
    def one_of(self, values: Sequence[Value]) -> Value: ...

    @abstractmethod
    def some(self, values: Sequence[Value], most: int) -> list[Value]:
        """At least one, none twice, and no more than this."""

    def once_in(self, count: int) -> bool:
        return self.number(1, count) == count


class Drawn(Dice):
    """By hypothesis: what fails is made small.

    All is drawn as numbers, by strategies that are made once: the rest would take half the time.
    """

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def number(self, least: int, most: int) -> int:
        return self._draw(_numbers(least, most))

    def one_of(self, values: Sequence[Value]) -> Value:
        return values[self.number(0, len(values) - 1)]

    def some(self, values: Sequence[Value], most: int) -> list[Value]:
        left = list(values)
        return [left.pop(self.number(0, len(left) - 1)) for _ in range(self.number(1, most))]


@cache
def _numbers(least: int, most: int) -> SearchStrategy[int]:
    return st.integers(least, most)


class Seeded(Dice):
    """By a seed: what fails is drawn again by the same one."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def number(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def one_of(self, values: Sequence[Value]) -> Value:
        return self._random.choice(values)

    def some(self, values: Sequence[Value], most: int) -> list[Value]:
        return self._random.sample(values, self._random.randint(1, most))
