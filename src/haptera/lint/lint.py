"""What is wrong, or may be, with the parts that modules declare for a kind, class by class."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from haptera.lint.demands import spoken
from haptera.lint.goals import Aim, lint_goal
from haptera.lint.pairs import undoes
from haptera.lint.parts import never, never_comes_up, result
from haptera.lint.reachability import CHOICES_CLASS_MAX
from haptera.lint.subject import LintSubject, subject_of
from haptera.lint.values import (
    dead_end,
    hope_repeats,
    no_look,
    split_grounds,
    unreachable,
    unserved,
)
from haptera.model.answers.finding import Finding, Level, Rule
from haptera.model.declared.schema import Applied, Kind
from haptera.model.errors import HapteraError
from haptera.model.parts import Manifest, Part, Step
from haptera.planner.domain.classes import CLASSES_MAX
from haptera.planner.domain.problem import Problem, check, problem_of, subjects
from haptera.planner.domain.witness import CHOICES_MAX, TooLargeError

# Of what was not checked, so many are named.
NAMED_MAX: Final = 3

_PARTS: Final[dict[str, Callable[[LintSubject, Part], Iterable[Finding]]]] = {
    "conditions that clash": never,
    "parts that never run": never_comes_up,
}
_STEPS: Final[dict[str, Callable[[LintSubject, Step], Iterable[Finding]]]] = {
    "results that are forgotten": result,
    "modules that undo each other": undoes,
}
_VARIABLES: Final[dict[str, Callable[[LintSubject, str], Iterable[Finding]]]] = {
    "variables that no look finds": no_look,
    "variables that no part serves": unserved,
    "dead ends": dead_end,
    "hopes that repeat": hope_repeats,
    "grounds that are split": split_grounds,
    "unreachable values": unreachable,
}


def lint_kinds(
    kinds: Mapping[str, Kind], manifests: Iterable[Manifest], others: Iterable[Manifest] = ()
) -> tuple[Finding, ...]:
    """All findings of what modules declare, of kinds that are there and of others.

    They are judged together with `others`; the parts of these get no notes.
    """
    by_kind: dict[str, list[Part]] = {}
    manifests = [*manifests]
    told = {None, *(one.name for one in manifests)}
    for manifest in (*manifests, *others):
        for part in manifest.parts:
            by_kind.setdefault(part.kind, []).append(part)
    found = (one for name, parts in by_kind.items() for one in _of_kind(kinds, name, parts))
    return in_order(one for one in found if one.level is not Level.NOTE or one.module in told)


def _of_kind(kinds: Mapping[str, Kind], name: str, parts: Sequence[Part]) -> list[Finding]:
    if name not in kinds:
        text = f"it serves kind {name!r}, which is not declared"
        return [Finding(Rule.MALFORMED, parts[0].path, text, name, parts[0].path)]
    kind = kinds[name]
    problem = problem_of(kind, parts, {})
    try:
        check(problem)
    except HapteraError as error:
        place = error.where or name
        of = next((one for one in parts if f"{place} ".startswith(f"{one.path} ")), None)
        if of is None and place in problem.variables:
            of = next((one for one in parts if place in subjects(one)), None)
            place = f"{name}.{place}"
        path = None if of is None else of.path
        return [Finding(Rule.MALFORMED, place, error.what, name, path, fix=error.do)]
    leaves = {variable.name: str(value) for variable, value in kind.leaves}
    # Other data being desired is what leads on from `current`.
    applied = {one.name for one in kind.variables if one.values is Applied}
    return [
        one
        for one in lint(name, problem, leaves)
        if one.rule is not Rule.ONE_WAY or one.variable not in applied
    ]


def lint(
    kind: str, problem: Problem, leaves: Mapping[str, str] | None = None
) -> tuple[Finding, ...]:
    """All findings, the gravest first; the problem has passed `check`.

    `leaves` is what entities of the kind are brought to at last. What takes too long to tell is
    left out: a note says what was not checked.
    """
    subject = subject_of(kind, problem)
    findings: list[Finding] = []
    skipped: dict[str, list[str]] = {}
    for what, place, found in chain(_asked(subject), _of_leaving(subject, leaves)):
        try:
            findings.extend(found)  # What was found before it took too long, stays.
        except TooLargeError:
            skipped.setdefault(what, []).append(place)
    findings += (_not_checked(kind, what, places) for what, places in skipped.items())
    return in_order(findings)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The gravest first, then by place; what two classes show in the same words, once."""
    levels = list(Level)
    by_words = {(levels.index(one.level), one.place, one.rule, one.text): one for one in findings}
    return tuple(by_words[words] for words in sorted(by_words))


def _asked(subject: LintSubject) -> Iterator[tuple[str, str, Iterable[Finding]]]:
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


def _of_leaving(
    subject: LintSubject, leaves: Mapping[str, str] | None
) -> Iterator[tuple[str, str, Iterable[Finding]]]:
    for one in subject.classes if leaves else ():
        aim = Aim(f"{subject.kind}, leaving", subject.kind, leaves or {}, one)
        yield "obstacles to leaving", subject.kind, lint_goal(aim)


def _not_checked(kind: str, what: str, places: list[str]) -> Finding:
    more = len(places) - NAMED_MAX
    named = [*places[:NAMED_MAX], *([f"{more} more"] if more > 0 else [])]
    text = (
        f"{what} were not searched for at {spoken(named)}: too large, of more than"
        f" {CHOICES_MAX:,} choices ({CHOICES_CLASS_MAX:,} for all) or {CLASSES_MAX} classes"
    )
    return Finding(Rule.NOT_CHECKED, kind, text, kind)
