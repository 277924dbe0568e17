"""What is linted: all parts of one kind, class by class."""

from dataclasses import dataclass
from typing import Final

from haptera.lint.demands import Clash
from haptera.lint.reachability import CHOICES_CLASS_MAX, Reachability
from haptera.model.answers.finding import Example, Finding, Rule
from haptera.model.parts import Part
from haptera.planner.domain.bitstate import Operator
from haptera.planner.domain.classes import compiling
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.pieces import Pieces, at_once
from haptera.planner.domain.problem import Problem, subjects
from haptera.planner.domain.witness import TooLargeError, Witness

# What it costs to prepare a look and a variable for questions, in moves tried.
LAYING: Final = 5


@dataclass(frozen=True, slots=True)
class LintSubject:
    """A kind's parts and the classes that these tell apart; not `complete`: some of the classes."""

    kind: str
    problem: Problem
    classes: tuple[Reachability, ...]
    complete: bool

    def having(self, part: Part) -> list[tuple[Reachability, Operator]]:
        """The classes that have the part."""
        moves = [(one, one.moves.get(part.path)) for one in self.classes]
        return [(one, move) for one, move in moves if move is not None]

    def check_complete(self) -> None:
        """For who wants to say that something is so in no class.

        Raises:
            TooLargeError: there are more than were compiled.
        """
        if not self.complete:
            raise TooLargeError

    def concerning(self, name: str) -> list[Part]:
        """The parts that look at a variable, then those that change it."""
        return [part for part in self.problem.parts if name in subjects(part)]

    def finding(
        self, rule: Rule, of: Part | str, text: str, *shown: Example, fix: str | None
    ) -> Finding:
        """What a rule finds of a part, or of a variable."""
        if isinstance(of, str):
            path = next((part.path for part in self.concerning(of)), None)
            return Finding(rule, f"{self.kind}.{of}", text, self.kind, path, of, shown, fix)
        return Finding(rule, of.path, text, self.kind, of.path, None, shown, fix)


def subject_of(kind: str, problem: Problem, choices_max: int = CHOICES_CLASS_MAX) -> LintSubject:
    """What is linted of a problem; each class may take so many choices."""
    return at_once(subjecting(kind, problem, choices_max))


def subjecting(kind: str, problem: Problem, choices_max: int) -> Pieces[LintSubject]:
    """The same, a piece at a time."""
    classes = yield from compiling(problem)
    prospects = []
    for domain in classes.domains:
        prospects.append(Reachability(domain, choices_max))
        yield LAYING * len(domain.looks) * len(domain.fields)
    return LintSubject(kind, problem, tuple(prospects), classes.complete)


def example(domain: Domain, found: Witness, move: Operator | None = None) -> Example:
    """A witness in words; with what the move makes of it, where there is one."""
    before, after = found.before, found.after
    at = attributes(domain), domain.known(before), domain.remembered(before)
    if move is None:
        return Example(*at, None, {}, {})
    return Example(*at, move.part.path, domain.known(after), domain.remembered(after))


def nearest(domain: Domain, found: Clash) -> tuple[Example, ...]:
    """The state that meets all but the last of what clashes; of one alone any state would do."""
    alone = len(found.demands) == 1
    return () if alone or found.nearest is None else (example(domain, found.nearest),)


def attributes(domain: Domain) -> dict[str, str | None]:
    """Those of the class that conditions of its kind's parts name."""
    mentioned = {
        one.name for part in domain.problem.parts for one in (*part.requires, *part.excludes)
    }
    given = domain.problem.attributes
    return {name: given[name] for name in sorted(given) if name in mentioned}
