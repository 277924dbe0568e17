"""The lint's rule for pairs of steps: what one module brings about, another's takes away."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product

from haptera.lint.reachability import Reachability
from haptera.lint.subject import LintSubject, example
from haptera.model.answers.finding import Example, Finding, Rule
from haptera.model.chain import Do
from haptera.model.parts import Change, Step
from haptera.planner.domain.bitstate import Field, Operator


@dataclass(frozen=True, slots=True)
class _Making:
    """A step, and one of the values that it brings about."""

    move: Operator
    field: Field
    bit: int

    @property
    def made(self) -> int:
        return ~self.field.whole | self.bit

    @property
    def unmade(self) -> int:
        return ~self.bit

    def spoils(self, field: Field) -> bool:
        """Whether it can take anything away from a variable."""
        upset = (one.variable for one in self.move.upsets)
        return bool(self.move.touches & field.whole) or field.name in upset


def undoes(subject: LintSubject, step: Step) -> Iterator[Finding]:
    """Steps of other modules that take away what this brings about, and the reverse.

    Both results can be known at once, but no step leads there.
    """
    others = [
        other
        for other in subject.problem.steps
        # Of each two, the first asks for both.
        if other.module != step.module and other.path > step.path
    ]
    for other in others:
        yield from islice(_of_both(subject, step, other), 1)


def _of_both(subject: LintSubject, step: Step, other: Step) -> Iterator[Finding]:
    for one, move in subject.having(step):
        if other.path in one.moves:
            pairs = product(_makings(one, move), _makings(one, one.moves[other.path]))
            for pair in pairs:
                if (shown := _undone(one, *pair)) is not None:
                    yield _finding(subject, *pair, shown)


def _makings(one: Reachability, move: Operator) -> list[_Making]:
    assert isinstance(move.part, Step)
    changes = [change for change in move.part.changes if not change.expected]
    fields = one.domain.fields
    return [_Making(move, fields[each.variable], _bit(fields, each)) for each in changes]


def _bit(fields: Mapping[str, Field], change: Change) -> int:
    return fields[change.variable].holding((change.target,))


def _undone(one: Reachability, first: _Making, other: _Making) -> tuple[Example, Example] | None:
    """Where each of the two takes the other's result away; None: that is not so."""
    if first.field is other.field:
        return None
    if not (first.spoils(other.field) and other.spoils(first.field)):
        return None
    shown = [_takes_away(one, *both) for both in ((first, other), (other, first))]
    if shown[0] is None or shown[1] is None or not one.find(first.made & other.made):
        return None
    if _brought_about(one, first, other):
        return None
    return shown[0], shown[1]


def _takes_away(one: Reachability, making: _Making, spoilt: _Making) -> Example | None:
    before, after = making.unmade & spoilt.made, making.made & spoilt.unmade
    found = one.find(before, making.move, after)
    return None if found is None else example(one.domain, found, making.move)


def _brought_about(one: Reachability, first: _Making, other: _Making) -> bool:
    """Whether some step leads to both results, from where they are not both there."""
    both = first.made & other.made
    return any(
        one.find(making.unmade, move, both)
        for move in one.domain.moves
        if isinstance(move.link, Do) and move.touches & (first.field.whole | other.field.whole)
        for making in (first, other)
    )


def _finding(
    subject: LintSubject, first: _Making, other: _Making, shown: tuple[Example, Example]
) -> Finding:
    this, that = first.move.part.path, other.move.part.path
    one, two = (f"{each.field.name}={each.field.value(each.bit)}" for each in (first, other))
    text = (
        f"{this} sets {one} and removes {two}; {that} sets {two} and removes {one};"
        " no step leads to both"
    )
    fix = f"make one keep the other's result, or never desire {one} and {two} at once"
    return subject.finding(Rule.UNDOES, first.move.part, text, *shown, fix=fix)
