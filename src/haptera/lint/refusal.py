"""Which parts are not planned with: those with which knowledge cannot hold, whatever the state."""

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import Final

from haptera.lint.parts import never, never_kept
from haptera.lint.subject import subjecting
from haptera.model.answers.finding import REFUSED, Finding
from haptera.model.declared.schema import Kind
from haptera.model.errors import HapteraError
from haptera.model.parts import Part
from haptera.planner.domain.pieces import Pieces, at_once
from haptera.planner.domain.problem import problem_of
from haptera.planner.domain.witness import TooLargeError

# What is asked of a class may take so many choices in all: one answer is a piece, of some 10 ms.
CHOICES_REFUSAL_MAX: Final = 100
# Kinds with their parts whose answers are kept: each process asks of the same few.
ANSWERS_MAX: Final = 64


def refuse(kind: Kind, parts: Iterable[Part]) -> None:
    """Let these parts, which have passed `check`, be planned with.

    Raises:
        HapteraError: knowledge cannot hold with one of them.
    """
    _raise(_fault(kind, tuple(parts)))


def refusing(kind: Kind, parts: Iterable[Part]) -> Pieces[None]:
    """The same, a piece at a time.

    Raises:
        HapteraError: knowledge cannot hold with one of them.
    """
    _raise((yield from _judging(kind, tuple(parts))))


@lru_cache(ANSWERS_MAX)
def _fault(kind: Kind, parts: tuple[Part, ...]) -> Finding | None:
    return at_once(_judging(kind, parts))


def _judging(kind: Kind, parts: tuple[Part, ...]) -> Pieces[Finding | None]:
    """The first fault that is proven; what takes too long to tell is none."""
    problem = problem_of(kind, parts, {})
    subject = yield from subjecting(kind.name, problem, CHOICES_REFUSAL_MAX)
    questions = chain(
        (never(subject, part) for part in parts),
        (never_kept(subject, step) for step in subject.problem.steps),
    )
    spent = 0
    for found in questions:
        with suppress(TooLargeError):
            if (finding := next(iter(found), None)) is not None:
                assert finding.rule in REFUSED
                return finding
        before, spent = spent, sum(one.states.work for one in subject.classes)
        yield spent - before
    return None


def _raise(finding: Finding | None) -> None:
    if finding is not None:
        raise HapteraError(finding.text, where=finding.place, do=finding.fix)
