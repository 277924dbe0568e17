"""Two rehearsals of the same seeds beside each other: where they first differ, and in what."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final

import msgspec

from haptera.rehearsal.rehearse import RehearsalRun, Span
from haptera.rehearsal.summary import RehearsalSummary

# The most differences that are shown.
DIFFERENCES_MAX: Final = 10


class SpanDifference(msgspec.Struct, frozen=True):
    """The steps of two runs at one place of their order; None where one has no more of them."""

    number: int
    one: Span | None
    other: Span | None


class ComparedRehearsals(msgspec.Struct, frozen=True):
    """Two rehearsals, and the first differences of their first runs, which have the same seed."""

    one: RehearsalSummary
    other: RehearsalSummary
    first: list[SpanDifference]

    @property
    def is_good(self) -> bool:
        """True if the first of them is."""
        return self.one.is_good


def first_differences(one: RehearsalRun, other: RehearsalRun) -> list[SpanDifference]:
    """The first places at which another step ran, or ran on something else, in order of begin.

    When a step begins and ends is no difference: what follows from it is.
    """
    return [*_differences(_ordered(one), _ordered(other))]


def _differences(one: Sequence[Span], other: Sequence[Span]) -> Iterator[SpanDifference]:
    told = 0
    for number, (left, right) in enumerate(zip_longest(one, other), start=1):
        if _what(left) != _what(right):
            yield SpanDifference(number, left, right)
            told += 1
        if told == DIFFERENCES_MAX:
            return


def _ordered(run: RehearsalRun) -> list[Span]:
    return sorted(run.spans, key=lambda one: (one.from_s, one.entity, one.part))


def _what(one: Span | None) -> tuple[str, str, bool] | None:
    return None if one is None else (one.entity, one.part, one.failed)
