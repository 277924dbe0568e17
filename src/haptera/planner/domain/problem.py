"""Planning problems: variables, attributes and parts of one kind, and their faults."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import chain

from haptera.kinds import node
from haptera.kinds.extensions import node_kind
from haptera.model.declared.schema import Kind
from haptera.model.errors import HapteraError
from haptera.model.parts import ANY, Change, Look, Part, Requirement, Step


@dataclass(frozen=True)
class Problem:
    """All that may be planned with, for one class of entities and for the others.

    The first value of a variable is its unknown; an attribute that the entity lacks is None.
    """

    variables: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, str | None]
    looks: tuple[Look, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*self.looks, *self.steps)

    @cached_property
    def listed(self) -> Mapping[str, frozenset[str]]:
        """The values of each variable."""
        return {name: frozenset(values) for name, values in self.variables.items()}

    @property
    def borrowed(self) -> tuple[str, ...]:
        """The variables that no part changes or looks at, by name."""
        served = {name for part in self.parts for name in subjects(part)}
        return tuple(sorted(set(self.variables) - served))


def problem_of(kind: Kind, parts: Iterable[Part], attributes: Mapping[str, str]) -> Problem:
    """The problem of an entity of this kind that has these attributes, its node's as `node.NAME`.

    >>> problem_of(node.kind, (), {"rack": "r1"}).variables["agent"]
    ('unknown', 'up')
    """
    variables = {one.name: one for one in kind.variables} | {one.path: one for one in kind.borrows}
    variables |= {str(one): one.variable for one in kind.related}
    declared = [one.name for one in kind.attributes]
    if kind.name != node.kind.name:
        declared += [f"{one.kind}.{one.name}" for one in node_kind().attributes]
    parts = tuple(parts)
    return Problem(
        {name: tuple(value.value for value in one.values) for name, one in variables.items()},
        {name: attributes.get(name) for name in declared},
        tuple(part for part in parts if isinstance(part, Look)),
        tuple(part for part in parts if isinstance(part, Step)),
    )


def subjects(part: Part) -> tuple[str, ...]:
    """The variables that a part looks at or changes."""
    return (part.at,) if isinstance(part, Look) else tuple(one.variable for one in part.changes)


def needs(problem: Problem) -> dict[str, list[str]]:
    """For each variable, those that looks at it require."""
    graph: dict[str, set[str]] = {name: set() for name in problem.variables}
    for look in problem.looks:
        graph[look.at].update(one.name for one in look.requires if one.name in graph)
    return {name: sorted(required) for name, required in graph.items()}


def check(problem: Problem) -> None:
    """Refuse a malformed problem (semantics.md, Malformed), parts outside the class included.

    Raises:
        HapteraError: the first fault, with its place.
    """
    parts = (_part_faults(problem, part) for part in problem.parts)
    faults = chain(_name_faults(problem), chain.from_iterable(parts), _cycles(problem))
    fault = next(faults, None)
    if fault is not None:
        raise fault


def check_values(
    problem: Problem,
    *,
    observed: Mapping[str, str],
    remembered: Mapping[str, str],
    desired: Mapping[str, str],
) -> None:
    """Refuse values that are none of their variable's; only an observed one may be unknown.

    Raises:
        HapteraError: the first fault, with its place.
    """
    places = {"observed": observed, "remembered": remembered, "desired": desired}
    for place, values in places.items():
        for name, value in values.items():
            fault = _variable_fault(problem, name, (value,), f"{place} {name}")
            if fault is not None:
                raise fault
            if value == problem.variables[name][0] and place != "observed":
                raise HapteraError("cannot be unknown", where=f"{place} {name}")


def _name_faults(problem: Problem) -> Iterator[HapteraError]:
    for name in sorted(set(problem.variables) & set(problem.attributes)):
        yield HapteraError(f"{name} is both a variable and an attribute", where=name)
    for name, values in problem.variables.items():
        if not values:
            yield HapteraError("has no values", where=name, do="list its unknown first")
        if len(set(values)) < len(values):
            yield HapteraError("lists a value twice", where=name)
        yield from _reserved(values, name)
    for name, attribute in problem.attributes.items():
        yield from _reserved(() if attribute is None else (attribute,), name)
    paths = Counter(part.path for part in problem.parts)
    for path in sorted(path for path, count in paths.items() if count > 1):
        yield HapteraError("two parts have this name", where=path)


def _reserved(values: Iterable[str], place: str) -> Iterator[HapteraError]:
    for value in values:
        if value.endswith("?") or value == ANY:
            yield HapteraError(f"no value may be '{ANY}' or end in '?', as {value!r}", where=place)


def _part_faults(problem: Problem, part: Part) -> Iterator[HapteraError]:
    if type(part.cost) is not int or part.cost < 1:
        yield HapteraError(
            f"{part.cost!r} is not a positive whole number", where=f"{part.path} cost"
        )
    times = (part.every_ms, part.within_ms) if isinstance(part, Look) else (part.within_ms,)
    if min(times) < 1:
        yield HapteraError("a time of 0 ms", where=part.path, do="use at least 1 ms")
    if isinstance(part, Look):
        yield from _outcome_faults(problem, part)
    else:
        yield from _change_faults(problem, part)
    for role, conditions in (("requires", part.requires), ("excludes", part.excludes)):
        for condition in conditions:
            yield from _condition_faults(problem, part, role, condition)


def _outcome_faults(problem: Problem, look: Look) -> Iterator[HapteraError]:
    place = f"{look.path} {'outcomes' if look.at in problem.variables else 'at'}"
    fault = _variable_fault(problem, look.at, look.outcomes, place)
    if fault is not None:
        yield fault
    elif problem.variables[look.at][0] in look.outcomes:
        yield HapteraError(f"a look cannot find {look.at} unknown", where=place)


def _change_faults(problem: Problem, step: Step) -> Iterator[HapteraError]:
    changed = subjects(step)
    if not changed:
        yield HapteraError("changes nothing", where=step.path)
    if len(set(changed)) < len(changed):
        yield HapteraError("changes a variable twice", where=step.path)
    for change in step.changes:
        yield from _one_change_faults(problem, change, f"{step.path} changes {change.variable}")


def _one_change_faults(problem: Problem, change: Change, place: str) -> Iterator[HapteraError]:
    sources = (change.target,) if change.sources == (ANY,) else change.sources
    fault = _variable_fault(problem, change.variable, (*sources, change.target), place)
    if fault is not None:
        yield fault
    elif change.target == problem.variables[change.variable][0]:
        yield HapteraError("a step cannot make a variable unknown", where=place)
    elif not change.sources:
        yield HapteraError("starts from no value", where=place)
    elif set(change.sources) == {change.target} and not change.expected:
        yield HapteraError(f"can only start from {change.target}, where it leads", where=place)


def _condition_faults(
    problem: Problem, part: Part, role: str, condition: Requirement
) -> Iterator[HapteraError]:
    name, place = condition.name, f"{part.path} {role} {condition.name}"
    if name in subjects(part):
        yield HapteraError("is also what this part looks at or changes", where=place)
    if name in problem.attributes:
        if not condition.values:
            yield HapteraError("lists no values", where=place)
        yield from _reserved(condition.values, place)
        return
    fault = _variable_fault(problem, name, condition.values, place)
    if fault is not None:
        yield fault
    elif problem.variables[name][0] in condition.values and (
        role == "requires" or isinstance(part, Look)
    ):
        yield HapteraError(f"cannot name {name}'s unknown", where=place)


def _variable_fault(
    problem: Problem, name: str, values: tuple[str, ...], place: str
) -> HapteraError | None:
    if name not in problem.variables:
        if name in problem.attributes:
            return HapteraError(f"{name} is an attribute, not a variable", where=place)
        return HapteraError(f"{name!r} is neither a variable nor an attribute", where=place)
    if not problem.listed[name].issuperset(values):
        listed = problem.variables[name]
        strange = next(value for value in values if value not in listed)
        return HapteraError(
            f"{strange!r} is no value of {name}", where=place, do=f"use {', '.join(listed)}"
        )
    return None if values else HapteraError("lists no values", where=place)


def _cycles(problem: Problem) -> Iterator[HapteraError]:
    try:
        TopologicalSorter(needs(problem)).prepare()
    except CycleError as error:
        names = " needs ".join(reversed(error.args[1]))
        yield HapteraError(
            f"looks depend on each other in a cycle: {names}",
            where=error.args[1][0],
            do="make one of them independent of the next",
        )
