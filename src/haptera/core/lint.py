"""What is wrong, or may be, with the parts that modules declare for a kind, class by class."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from haptera.core.classes import CLASSES_MAX
from haptera.core.demands import listed
from haptera.core.lint_pairs import undoes
from haptera.core.lint_parts import never, never_comes_up, result
from haptera.core.lint_subject import Subject, subject_of
from haptera.core.lint_values import (
    dead_end,
    hope_repeats,
    no_look,
    split_grounds,
    unreachable,
)
from haptera.core.problem import Problem
from haptera.core.witness import CHOICES_MAX, TooLargeError
from haptera.model.finding import Finding, Level, Rule
from haptera.model.parts import Part, Step

# Of what was not checked, so many are named.
NAMED_MAX: Final = 3

_PARTS: Final[dict[str, Callable[[Subject, Part], Iterable[Finding]]]] = {
    "conditions that clash": never,
    "turns that never come": never_comes_up,
}
_STEPS: Final[dict[str, Callable[[Subject, Step], Iterable[Finding]]]] = {
    "results that are forgotten": result,
    "modules that undo each other": undoes,
}
_VARIABLES: Final[dict[str, Callable[[Subject, str], Iterable[Finding]]]] = {
    "variables that no look finds": no_look,
    "dead ends": dead_end,
    "hopes that repeat": hope_repeats,
    "grounds that are split": split_grounds,
    "unreachable values": unreachable,
}


def lint(kind: str, problem: Problem) -> tuple[Finding, ...]:
    """All findings, the gravest first; the problem has passed `check`.

    What takes too long to tell is not told: a note says what was not checked.
    """
    subject = subject_of(kind, problem)
    findings: list[Finding] = []
    skipped: dict[str, list[str]] = {}
    for what, place, found in _asked(subject):
        try:
            findings.extend(found)  # What was found before it took too long, stays.
        except TooLargeError:
            skipped.setdefault(what, []).append(place)
    findings += (_not_checked(kind, what, places) for what, places in skipped.items())
    return in_order(findings)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The gravest first, then by place."""
    levels = list(Level)
    return tuple(
        sorted(findings, key=lambda one: (levels.index(one.level), one.place, one.rule, one.text))
    )


def _asked(subject: Subject) -> Iterator[tuple[str, str, Iterable[Finding]]]:
    """What is looked for, of what, and all that is found, once somebody reads it."""
    for what, of_part in _PARTS.items():
        for part in subject.problem.parts:
            yield what, part.path, of_part(subject, part)
    for what, of_step in _STEPS.items():
        for step in subject.problem.steps:
            yield what, step.path, of_step(subject, step)
    for what, of_variable in _VARIABLES.items():
        for name in subject.problem.variables:
            yield what, name, of_variable(subject, name)


def _not_checked(kind: str, what: str, places: list[str]) -> Finding:
    more = len(places) - NAMED_MAX
    named = [*places[:NAMED_MAX], *([f"{more} more"] if more > 0 else [])]
    text = (
        f"{what} were not looked for at {listed(named)}: too large, of more than"
        f" {CHOICES_MAX:,} choices or {CLASSES_MAX} classes"
    )
    return Finding(Rule.NOT_CHECKED, kind, text, kind)
