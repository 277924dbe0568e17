"""Which parts are not planned with: those with which knowledge cannot hold, whatever the state."""

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from typing import Final

from haptera.core.lint_parts import never, never_kept
from haptera.core.lint_subject import subject_of
from haptera.core.problem import problem_of
from haptera.core.witness import TooLargeError
from haptera.model.errors import HapteraError
from haptera.model.finding import REFUSED, Finding
from haptera.model.parts import Part
from haptera.model.schema import Kind

# A daemon that takes a module over waits for the answer: less than a lint may take.
CHOICES_REFUSAL_MAX: Final = 500
# Kinds with their parts whose answers are kept: each process asks of the same few.
ANSWERS_MAX: Final = 64


def refuse(kind: Kind, parts: Iterable[Part]) -> None:
    """Let these parts, which have passed `check`, be planned with.

    Raises:
        HapteraError: knowledge cannot hold with one of them.
    """
    finding = _fault(kind, tuple(parts))
    if finding is not None:
        raise HapteraError(finding.text, where=finding.place, do=finding.fix)


@lru_cache(ANSWERS_MAX)
def _fault(kind: Kind, parts: tuple[Part, ...]) -> Finding | None:
    """The first fault that is proven; what takes too long to tell is none."""
    subject = subject_of(kind.name, problem_of(kind, parts, {}), CHOICES_REFUSAL_MAX)
    questions = chain(
        (never(subject, part) for part in parts),
        (never_kept(subject, step) for step in subject.problem.steps),
    )
    for found in questions:
        try:
            if (finding := next(iter(found), None)) is not None:
                assert finding.rule in REFUSED
                return finding
        except TooLargeError:
            continue
    return None
