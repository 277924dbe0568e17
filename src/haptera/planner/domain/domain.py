"""The domain: a class of entities, compiled to what it can know and the operators it has."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from graphlib import TopologicalSorter
from operator import or_
from typing import Final, TypeVar

from haptera.model.chain import Do, Find
from haptera.model.parts import ANY, Change, Look, Part, Requirement, Step
from haptera.planner.domain.bitstate import Field, Operator, Support, is_grounded, strip
from haptera.planner.domain.pieces import Pieces, at_once
from haptera.planner.domain.problem import Problem, needs

# What compiling a move costs, in moves that a search could try.
COMPILING: Final = 200

Fields = Mapping[str, Field]
AnyPart = TypeVar("AnyPart", Look, Step)


@dataclass(frozen=True, eq=False)
class Domain:
    """What a class of entities can know and do. States are words, always stripped.

    `grounds` are in dependency order, all parts and moves in the order of their paths. `doubts`
    are the moves of looks that do not trust a memory. `by_look` has both for the path of a look.
    """

    problem: Problem
    fields: Fields
    grounds: tuple[Support, ...]
    looks: tuple[Look, ...]
    steps: tuple[Step, ...]
    moves: tuple[Operator, ...]
    doubts: tuple[Operator, ...]
    by_look: Mapping[str, tuple[Operator, ...]]

    def start(self, observed: Mapping[str, str], remembered: Mapping[str, str]) -> int:
        """The state of these values; observed ones win, and an observed unknown says nothing.

        Raises:
            KeyError: there is no such variable; ValueError: a value is none of its variable's.
        """
        state = self.unknown
        for values, is_known in ((remembered, False), (observed, True)):
            for name, value in values.items():
                field = self.fields[name]
                if bit := field.holding((value,)):
                    state = state & ~field.whole | (bit if is_known else bit << field.width)
        return self.strip(state)

    def strip(self, state: int) -> int:
        """Remember what is known but cannot be looked at in this state."""
        return strip(state, self.grounds)

    def known(self, state: int) -> dict[str, str]:
        values = {name: field.value(state) for name, field in self.fields.items()}
        return {name: value for name, value in values.items() if value is not None}

    def remembered(self, state: int) -> dict[str, str]:
        values = {name: field.memory(state) for name, field in self.fields.items()}
        return {name: value for name, value in values.items() if value is not None}

    def knowable(self, state: int, variable: str, value: str) -> bool:
        """Whether the value, were it so, could be looked at in this state."""
        bit = self.fields[variable].holding((value,))
        return all(is_grounded(state, one, bit) for one in self.grounds if one.variable == variable)

    def wanted(self, goal: Mapping[str, str]) -> int:
        """The bits of the states that meet the goal."""
        return _union(self.fields[name].holding((value,)) for name, value in goal.items())

    def meets(self, state: int, goal: Mapping[str, str]) -> bool:
        wanted = self.wanted(goal)
        return state & wanted == wanted

    @cached_property
    def unknown(self) -> int:
        """The state in which nothing is known, and nothing remembered."""
        return _union(field.unknown for field in self.fields.values())

    @cached_property
    def touched(self) -> int:
        """The bits that a search sets at its root for the variables whose memory it trusts."""
        return _union(field.touched for field in self.fields.values())

    def memories(self, state: int) -> int:
        """Those of these bits whose variables are remembered in the state."""
        fields = self.fields.values()
        return _union(one.touched for one in fields if state & one.remembered)

    def looks_open(self, state: int) -> tuple[Look, ...]:
        """The looks whose conditions hold here, whether or not their variable is known already."""
        return tuple(look for look, closed in self._closed if not state & closed)

    @cached_property
    def _closed(self) -> tuple[tuple[Look, int], ...]:
        """The looks, each with the bits that forbid it."""
        return tuple((look, forbidden(look, self.fields)) for look in self.looks)


def compile_class(problem: Problem) -> Domain:
    """Compile the parts that the attributes select; the problem has passed `check`."""
    return at_once(compiling_class(problem))


def compiling_class(problem: Problem) -> Pieces[Domain]:
    """The same, a piece at a time."""
    fields = _fields(problem)
    looks = tuple(sorted(_of_class(problem, problem.looks), key=lambda look: look.path))
    steps = tuple(sorted(_of_class(problem, problem.steps), key=lambda step: step.path))
    unyielded = _unyielded(fields, looks)
    grounds = _grounds(problem, fields, looks, unyielded)
    moves, doubts = list[Operator](), list[Operator]()
    by_look: dict[str, tuple[Operator, ...]] = {}
    for look in looks:
        trusting = _look_moves(look, fields, unyielded[look.at])
        doubting = _doubts(look, fields)
        moves += trusting
        doubts += doubting
        by_look[look.path] = (*trusting, *doubting)
        yield COMPILING * len(look.outcomes)
    for step in steps:
        moves.append(_step_move(step, fields, grounds))
        yield COMPILING
    moves.sort(key=lambda move: move.part.path)
    return Domain(problem, fields, grounds, looks, steps, tuple(moves), tuple(doubts), by_look)


def excluding_attribute(problem: Problem, part: Part) -> Requirement | None:
    """The first condition on an attribute that keeps a part out of the class, if one does."""
    for one in part.requires:
        if one.name in problem.attributes and problem.attributes[one.name] not in one.values:
            return one
    for one in part.excludes:
        if one.name in problem.attributes and problem.attributes[one.name] in one.values:
            return one
    return None


def forbidden(part: Part, fields: Fields) -> int:
    """The bits that must not be set for the part's conditions on variables to hold."""
    requires = _union(unmet(one, fields) for one in part.requires)
    return requires | _union(excluded(one, fields) for one in part.excludes)


def unmet(condition: Requirement, fields: Fields) -> int:
    """The bits that break a requirement; none for one on an attribute, which holds in the class."""
    field = fields.get(condition.name)
    return 0 if field is None else field.whole & ~field.holding(condition.values)


def excluded(condition: Requirement, fields: Fields) -> int:
    """The bits that an exclude forbids: known and remembered values alike."""
    field = fields.get(condition.name)
    if field is None:
        return 0
    known = field.holding(condition.values)
    return known | known << field.width | field.lacking(condition.values)


def unsourced(change: Change, fields: Fields) -> int:
    """The bits from which a change does not start."""
    field = fields[change.variable]
    if change.sources == (ANY,):
        return field.holding((change.target,))
    return field.whole & ~field.holding(change.sources) & ~field.lacking(change.sources)


def _fields(problem: Problem) -> dict[str, Field]:
    fields, lowest = {}, 1
    above = sum(2 * len(values) - 1 for values in problem.variables.values())
    for number, (name, values) in enumerate(problem.variables.items()):
        fields[name] = Field(name, values, lowest, touched=1 << above + number)
        lowest <<= 2 * len(values) - 1
    return fields


def _of_class(problem: Problem, parts: Iterable[AnyPart]) -> list[AnyPart]:
    return [part for part in parts if excluding_attribute(problem, part) is None]


def _unyielded(fields: Fields, looks: Iterable[Look]) -> dict[str, int]:
    """For each variable, the values that no look of the class yields."""
    left = {name: field.known for name, field in fields.items()}
    for look in looks:
        left[look.at] &= ~fields[look.at].holding(look.outcomes)
    return left


def _grounds(
    problem: Problem, fields: Fields, looks: Iterable[Look], unyielded: Mapping[str, int]
) -> tuple[Support, ...]:
    mine: dict[str, list[Look]] = {look.at: [] for look in problem.looks}
    for look in looks:
        mine[look.at].append(look)
    order = (name for name in TopologicalSorter(needs(problem)).static_order() if name in mine)
    return tuple(_grounds_of(fields[one], fields, mine[one], unyielded[one]) for one in order)


def _grounds_of(field: Field, fields: Fields, mine: Iterable[Look], unyielded: int) -> Support:
    """What knowing a variable rests on; looks that require the same count as one."""
    yields: dict[int, int] = {}
    for look in mine:
        closed = _union(unmet(one, fields) for one in look.requires)
        yields[closed] = yields.get(closed, unyielded) | field.holding(look.outcomes)
    return Support(
        field.name,
        field.known,
        field.width,
        tuple((bits, closed) for closed, bits in yields.items()),
        _union(_spans(fields, look.requires) for look in mine),
    )


def _look_moves(look: Look, fields: Fields, unyielded: int) -> list[Operator]:
    """From unknown any outcome; from a memory itself, or any where no look yields it."""
    field = fields[look.at]
    others = field.remembered & ~(unyielded << field.width)
    return _moves_of(look, fields, lambda bit: others & ~(bit << field.width))


def _doubts(look: Look, fields: Fields) -> list[Operator]:
    """From a memory that was not touched since, any outcome."""
    field = fields[look.at]
    return _moves_of(look, fields, lambda _bit: field.unknown | field.touched)


def _moves_of(look: Look, fields: Fields, closed: Callable[[int], int]) -> list[Operator]:
    """A move for each outcome, in the order of the values; what its bit closes forbids it."""
    field, barring = fields[look.at], forbidden(look, fields)
    reads = field.span | _spans(fields, (*look.requires, *look.excludes))
    found = set(look.outcomes)
    return [
        Operator(
            Find(look, value, hoped=False),
            barring | field.known | closed(bit),
            keep=~field.whole,
            put=bit | field.touched,
            touches=field.span,
            reads=reads,
        )
        for value, bit in zip(field.values[1:], field.bits, strict=False)
        if value in found
    ]


def _step_move(step: Step, fields: Fields, grounds: tuple[Support, ...]) -> Operator:
    changed = _union(fields[one.variable].span for one in step.changes)
    return Operator(
        Do(step),
        forbidden(step, fields) | _union(unsourced(one, fields) for one in step.changes),
        keep=~changed,
        put=_union(_target(one, fields[one.variable]) for one in step.changes),
        touches=changed,
        reads=changed | _spans(fields, (*step.requires, *step.excludes)),
        upsets=_upset(changed, grounds),
    )


def _upset(changed: int, grounds: tuple[Support, ...]) -> tuple[Support, ...]:
    """The grounds of what is changed, of what rests on that, and so on up."""
    upset = []
    for one in grounds:
        if changed & (one.known | one.reads):
            upset.append(one)
            changed |= one.known
    return tuple(upset)


def _target(change: Change, field: Field) -> int:
    bit = field.holding((change.target,))
    return field.touched | (bit << field.width if change.expected else bit)


def _spans(fields: Fields, conditions: Iterable[Requirement]) -> int:
    return _union(fields[one.name].span for one in conditions if one.name in fields)


def _union(bits: Iterable[int]) -> int:
    return reduce(or_, bits, 0)
