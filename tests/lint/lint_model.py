"""The lint's rules in plain Python, as its page has them: all states are looked at."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations, product

from haptera.model.answers.finding import Rule
from haptera.model.parts import Change, Look, Part, Step
from haptera.planner.domain.problem import Problem, subjects
from tests.planner.planner_model import Model, State

Status = tuple[str, str]
# A rule, the place that it is told of, and the value, where that matters.
Key = tuple[Rule, str, str]


@dataclass(frozen=True)
class PlainClass:
    """One class: its states, what can come about, and where each variable can go."""

    model: Model

    @cached_property
    def parts(self) -> list[Part]:
        return [*self.model.looks, *self.model.steps]

    @cached_property
    def states(self) -> list[State]:
        """All that strip leaves alone, of known, remembered and unknown values."""
        variables = self.model.problem.variables
        statuses = [(*values, *(f"{one}?" for one in values[1:])) for values in variables.values()]
        drawn = (dict(zip(variables, some, strict=True)) for some in product(*statuses))
        return [state for state in drawn if self.model.strip(state) == state]

    @cached_property
    def led(self) -> dict[str, list[tuple[State, State]]]:
        """For each part, the states that it can be taken in, each with one that it leads to."""
        return {part.path: list(self._led(part)) for part in self.parts}

    def _led(self, part: Part) -> Iterator[tuple[State, State]]:
        for state in self.states:
            if isinstance(part, Step):
                if self.model.applicable(state, part):
                    yield state, self.model.strip(self.model.changed(state, part))
            else:
                for outcome in self.model.expectations(state, part, frozenset()):
                    yield state, state | {part.at: outcome}

    @cached_property
    def possible(self) -> set[Status]:
        """What can come about: of each variable, the statuses."""
        problem = self.model.problem
        served = {name for part in problem.parts for name in subjects(part)}
        found = {(name, values[0]) for name, values in problem.variables.items()}
        for name, values in problem.variables.items():
            if name not in served:
                found |= {(name, one) for value in values[1:] for one in (value, value + "?")}
        while True:
            new = {one for part in self.parts for one in self._gained(part, found)} - found
            if not new:
                return found
            found |= new

    def _gained(self, part: Part, found: set[Status]) -> Iterator[Status]:
        for before, after in self.led[part.path]:
            if set(before.items()) <= found:
                for name in subjects(part):
                    yield name, after[name]
                    yield name, after[name].removesuffix("?") + "?"
                if isinstance(part, Step) and part.fails_to is not None:
                    yield part.changes[0].variable, part.fails_to
                    yield part.changes[0].variable, part.fails_to + "?"

    def can_be(self, state: State) -> bool:
        return set(state.items()) <= self.possible

    def taken(self, part: Part) -> list[tuple[State, State]]:
        """The same as `led`, of what can come about only."""
        return [(before, after) for before, after in self.led[part.path] if self.can_be(before)]

    def ways(self, name: str, part: Part) -> set[tuple[str, str]]:
        if name not in subjects(part):
            return set()
        return {(before[name], after[name]) for before, after in self.taken(part)}

    def reach(self, name: str, start: str) -> set[str]:
        """All that a variable can come to be, by parts and by being forgotten."""
        looked_at = any(look.at == name for look in self.model.problem.looks)
        ways = {way for part in self.parts for way in self.ways(name, part)}
        found, before = {start}, set[str]()
        while found != before:
            before = set(found)
            if looked_at:
                known = {one for one in found if self.model.is_known(name, one)}
                found |= {f"{one}?" for one in known}
            found |= {target for source, target in ways if source in found}
        return found


@dataclass(frozen=True)
class PlainLint:
    """What the rules find, by looking at all states of all classes."""

    problem: Problem

    @cached_property
    def classes(self) -> list[PlainClass]:
        named: dict[str, set[str | None]] = {name: {None} for name in self.problem.attributes}
        for part in self.problem.parts:
            for one in (*part.requires, *part.excludes):
                named.get(one.name, set()).update((*one.values, "some other"))
        chosen = product(*(sorted(values, key=str) for values in named.values()))
        attributes = (dict(zip(named, values, strict=True)) for values in chosen)
        classes = {}
        for one in attributes:
            made = PlainClass(Model(replace(self.problem, attributes=one)))
            classes.setdefault(tuple(part.path for part in made.parts), made)
        return [one for one in classes.values() if one.parts]

    def having(self, part: Part) -> list[PlainClass]:
        return [one for one in self.classes if part in one.parts]

    def found(self) -> set[Key]:
        keys: set[Key] = set()
        for part in self.problem.parts:
            keys |= set(self.of_part(part))
        for step in self.problem.steps:
            keys |= set(self.of_step(step))
        for name in self.problem.variables:
            keys |= set(self.of_variable(name))
        return keys

    def of_part(self, part: Part) -> Iterator[Key]:
        having = self.having(part)
        if not any(one.led[part.path] for one in having):
            rule = Rule.NEVER_OPENS if isinstance(part, Look) else Rule.NEVER_APPLIES
            yield rule, part.path, ""
        elif not any(one.taken(part) for one in having):
            yield Rule.NEVER_COMES_UP, part.path, ""

    def of_step(self, step: Step) -> Iterator[Key]:
        having = self.having(step)
        ever = any(one.led[step.path] for one in having)
        for change in step.changes if ever else ():
            name, value = change.variable, change.target
            if change.expected:
                continue
            if all(after[name] != value for one in having for _, after in one.led[step.path]):
                yield Rule.NEVER_KEPT, step.path, f"{name}={value}"
            elif any(after[name] != value for one in having for _, after in one.taken(step)):
                yield Rule.MAY_BE_LOST, step.path, f"{name}={value}"
        for other in self.problem.steps:
            both = [one for one in having if other in one.parts and step.module != other.module]
            if step.path < other.path and any(self.undo(one, step, other) for one in both):
                yield Rule.UNDOES, step.path, other.path

    def undo(self, one: PlainClass, step: Step, other: Step) -> bool:
        made = [change for change in step.changes if not change.expected]
        unmade = [change for change in other.changes if not change.expected]
        return any(
            self.undo_values(one, (step, mine), (other, its))
            for mine, its in product(made, unmade)
            if mine.variable != its.variable
        )

    def undo_values(
        self, one: PlainClass, mine: tuple[Step, Change], its: tuple[Step, Change]
    ) -> bool:
        (step, first), (other, second) = mine, its

        def both(state: State) -> bool:
            return (state[first.variable], state[second.variable]) == (first.target, second.target)

        return (
            self.takes_away(one, step, first, second)
            and self.takes_away(one, other, second, first)
            and any(both(state) for state in one.states if one.can_be(state))
            and not any(
                both(after) and not both(before)
                for part in one.model.steps
                for before, after in one.taken(part)
            )
        )

    def takes_away(self, one: PlainClass, step: Step, made: Change, spoilt: Change) -> bool:
        return any(
            before[spoilt.variable] == spoilt.target != after[spoilt.variable]
            and before[made.variable] != made.target == after[made.variable]
            for before, after in one.taken(step)
        )

    def of_variable(self, name: str) -> Iterator[Key]:
        parts = [part for part in self.problem.parts if name in subjects(part)]
        if not parts:
            requiring = [
                part
                for part in self.problem.parts
                if any(one.name == name for one in part.requires)
            ]
            if requiring and name in "abcd":
                yield Rule.UNSERVED, requiring[0].path, ""
            return
        firm = [
            {one.variable for one in part.changes if not one.expected} or {name}
            for part in parts
            if not isinstance(part, Look)
        ]
        if len(firm) == len(parts) and any(name in some for some in firm):
            yield Rule.NO_LOOK, name, ""
        values = self.problem.variables[name][1:]
        for value in values:
            if not any((name, value) in one.possible for one in self.classes):
                yield Rule.UNREACHABLE_VALUE, name, value
        for one in self.classes:
            yield from self.ends(one, name)
            yield from self.hopes(one, name)
            yield from self.splits(one, name)

    def ends(self, one: PlainClass, name: str) -> Iterator[Key]:
        changed = any(name in subjects(step) for step in one.model.steps)
        changes = [each for step in self.problem.steps for each in step.changes]
        targets = {each.target for each in changes if each.variable == name}
        values = self.problem.variables[name][1:]
        known = [value for value in values if (name, value) in one.possible]
        for value in known if changed and len(known) > 1 else ():
            stands = any(state[name] == value for state in one.states if one.can_be(state))
            if stands and not one.reach(name, value) & set(values) - {value}:
                rule = Rule.ONE_WAY if value in targets else Rule.DEAD_END
                yield rule, name, value

    def hopes(self, one: PlainClass, name: str) -> Iterator[Key]:
        looks = [look for look in one.model.looks if look.at == name]
        found = {value for look in looks for value in look.outcomes}
        for step in one.model.steps if looks else ():
            for change in step.changes:
                if change.variable == name and change.target not in found:
                    hidden = f"{change.target}?"
                    for look in looks:
                        hoping = any(before[name] == hidden for before, _ in one.taken(look))
                        back = {end for value in look.outcomes for end in one.reach(name, value)}
                        again = any(source in back for source, _ in one.ways(name, step))
                        if hoping and again and len(look.outcomes) > 1:
                            yield Rule.HOPE_REPEATS, step.path, ""

    def splits(self, one: PlainClass, name: str) -> Iterator[Key]:
        looks = [look for look in one.model.looks if look.at == name]
        for first, other in permutations(looks, 2):
            both = [first.requires, other.requires]
            if any(all(one.model.required(state, some) for some in both) for state in one.states):
                continue
            for step in one.model.steps:
                for before, after in one.taken(step):
                    if (
                        name not in subjects(step)
                        and before[name] == after[name]
                        and before[name] in {*first.outcomes} & {*other.outcomes}
                        and one.model.required(before, first.requires)
                        and one.model.required(after, other.requires)
                    ):
                        yield Rule.SPLIT_GROUNDS, name, ""
