"""What problems are drawn with: hypothesis, which shrinks, or a seed, which is much faster."""

from abc import abstractmethod
from collections.abc import Sequence
from random import Random
from typing import Protocol, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

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
    """By hypothesis: what fails is made small."""

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def number(self, least: int, most: int) -> int:
        return self._draw(st.integers(least, most))

    def one_of(self, values: Sequence[Value]) -> Value:
        return self._draw(st.sampled_from(values))

    def some(self, values: Sequence[Value], most: int) -> list[Value]:
        return self._draw(st.lists(st.sampled_from(values), min_size=1, max_size=most, unique=True))


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
