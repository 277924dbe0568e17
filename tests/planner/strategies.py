"""Problems drawn while walking through their states, so that most of them have something to plan.

A walk begins at a drawn start; at each state it takes a part that is there, or invents a step that
can be taken. The goal is where it ends, or the farthest that it could have come. Then shortcuts
are laid that an exclude bars, and at times a step is taken away or another goal set.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from haptera.model.parts import Change, Look, Requirement, Step
from haptera.planner.domain.problem import Problem
from tests.planner.dice import Dice, Drawn
from tests.planner.planner_model import Model, State, freeze

Example = TypeVar("Example")

UNKNOWN = "unknown"
BORROWED = "node.x"
PACES_MIN = 5
PACES_MAX = 8


@dataclass(frozen=True)
class Question:
    problem: Problem
    observed: Mapping[str, str]
    remembered: Mapping[str, str]
    desired: Mapping[str, str]

    @cached_property
    def model(self) -> Model:
        """The plain model of the problem; it remembers what it went through."""
        return Model(self.problem)

    @property
    def start(self) -> State:
        """The start in the plain model."""
        return self.model.start(self.observed, self.remembered)


@st.composite
def questions(draw: DrawFn) -> Question:
    return question(Drawn(draw))


def question(dice: Dice) -> Question:
    names = "abcd"[: dice.number(3, 4)]
    variables = {name: _values(dice, 3) for name in names}
    if dice.once_in(2):
        variables[BORROWED] = _values(dice, 2)
    looks = [look for name in names for look in _looks(dice, variables, name)]
    problem = Problem(variables, {"p": dice.one_of(["1", None])}, tuple(looks))
    observed, remembered = _start(dice, variables)
    start = Model(problem).start(observed, remembered)
    problem, end = _walk(dice, problem, start)
    if not dice.once_in(3):
        end = _farthest(problem, start)
    desired = _goal(dice, problem, start, end)
    if dice.once_in(2):
        problem = _with_shortcut(dice, problem, start, desired)
    if dice.once_in(3):
        problem = _less_one_step(dice, problem)
    return Question(problem, observed, remembered, desired)


def _values(dice: Dice, known_max: int) -> tuple[str, ...]:
    return (UNKNOWN, *"123"[: dice.number(2, known_max)])


def _start(dice: Dice, variables: Mapping[str, tuple[str, ...]]) -> tuple[State, State]:
    observed, remembered = {}, {}
    for name, values in variables.items():
        value = dice.one_of(values[1:])
        match dice.number(0, 5):
            case 0:
                pass
            case 1 | 2:
                remembered[name] = value
            case _:
                observed[name] = value
    return observed, remembered


def _looks(dice: Dice, variables: Mapping[str, tuple[str, ...]], name: str) -> list[Look]:
    """Mostly one; what it requires lies before its variable, so that there is no circle."""
    looks = []
    before = [one for one in variables if one < name or one == BORROWED]
    for number in range(dice.one_of([0, 1, 1, 1, 2])):
        requires = []
        if before and not dice.once_in(4):
            requires.append(_condition(dice, variables, dice.one_of(before)))
        if dice.once_in(6):
            requires.append(Requirement("p", ("1",)))
        excludes = []
        others = [one for one in variables if one != name]
        if dice.once_in(8):
            excludes.append(_condition(dice, variables, dice.one_of(others)))
        outcomes = variables[name][1:]
        if dice.once_in(3):
            outcomes = _some(dice, outcomes)
        looks.append(
            Look("m", f"look_{name}{number}", "k", name, outcomes, tuple(requires), tuple(excludes))
        )
    return looks


def _condition(dice: Dice, variables: Mapping[str, tuple[str, ...]], name: str) -> Requirement:
    return Requirement(name, _some(dice, variables[name][1:]))


def _some(dice: Dice, values: tuple[str, ...]) -> tuple[str, ...]:
    chosen = dice.some(values, len(values))
    return tuple(sorted(chosen))


def _walk(dice: Dice, problem: Problem, state: State) -> tuple[Problem, State]:
    seen = {freeze(state)}
    last: set[str] = set()
    for number in range(dice.number(PACES_MIN, PACES_MAX)):
        model = Model(problem)
        around = model.after((freeze(state), frozenset()))
        there = sorted({frozen for _, _, (frozen, _) in around} - seen)
        if there and dice.once_in(2):
            onward = dict(dice.one_of(there))
        else:
            step = _step(dice, model, state, last, f"step{number}")
            problem = replace(problem, steps=(*problem.steps, step))
            onward = model.strip(model.changed(state, step))
        if freeze(onward) not in seen:
            seen.add(freeze(onward))
            last = {name for name, status in onward.items() if state[name] != status}
            state = onward
    return problem, state


def _farthest(problem: Problem, start: State) -> State:
    costs = Model(problem).costs((freeze(start), frozenset()))
    (frozen, _), _ = max(costs.items(), key=lambda one: (one[1], one[0][0]))
    return dict(frozen)


def _step(dice: Dice, model: Model, state: State, last: set[str], name: str) -> Step:
    """A step that can be taken in this state, and often only just after what was done last."""
    served = [one for one in state if one != BORROWED]
    changed = dice.some(served, min(2, len(served)))
    left = [one for one in sorted(state) if one not in changed]
    requires = [
        Requirement(one, (state[one],))
        for one in left
        if model.is_known(one, state[one]) and (one in last or dice.once_in(2))
    ]
    excludes = []
    for one in left:
        others = [value for value in model.problem.variables[one] if value != UNKNOWN]
        others = [value for value in others if value != state[one].removesuffix("?")]
        if others and dice.once_in(5):
            excludes.append(Requirement(one, tuple(others)))
    return Step(
        "m",
        name,
        "k",
        tuple(_change(dice, model, one, state[one]) for one in changed),
        tuple(requires),
        tuple(excludes),
        cost=dice.number(1, 4),
    )


def _change(dice: Dice, model: Model, name: str, status: str) -> Change:
    values = [value for value in model.problem.variables[name][1:] if value != status]
    target = dice.one_of(values)
    source = status if model.is_known(name, status) else UNKNOWN
    sources = dice.one_of([(source,), (source,), (source,), (source, target), ("*",)])
    return Change(name, sources, target, expected=dice.once_in(6))


def _goal(dice: Dice, problem: Problem, start: State, end: State) -> State:
    """What became known on the way, mostly; at times anything, above all of what is remembered."""
    model = Model(problem)
    known = {name: value for name, value in end.items() if model.is_known(name, value)}
    new = {name: value for name, value in known.items() if start[name] != value}
    if not new or dice.once_in(6):
        memories = sorted(name for name in start if start[name].endswith("?"))
        name = dice.one_of(memories or sorted(problem.variables))
        return {name: dice.one_of(problem.variables[name][1:])}
    return new | {name: value for name, value in known.items() if dice.once_in(2)}


def _less_one_step(dice: Dice, problem: Problem) -> Problem:
    kept = list(problem.steps)
    if kept:
        del kept[dice.number(0, len(kept) - 1)]
    return replace(problem, steps=tuple(kept))


def _with_shortcut(dice: Dice, problem: Problem, start: State, goal: State) -> Problem:
    """A cheap step from the start to the goal, which something that is so at the start excludes."""
    changed = [name for name in goal if name != BORROWED and start[name] != goal[name]]
    bars = [name for name in start if name not in changed and start[name] != UNKNOWN]
    if not changed or not bars:
        return problem
    bar = dice.one_of(bars)
    step = Step(
        "m",
        "shortcut",
        "k",
        tuple(Change(name, ("*",), goal[name]) for name in changed),
        excludes=(Requirement(bar, (start[bar].removesuffix("?"),)),),
    )
    return replace(problem, steps=(*problem.steps, step))


def show_each(
    examples: SearchStrategy[Example], count: int, show: Callable[[Example], None]
) -> None:
    """Show so many examples, the same ones each time: for what holds of all of them together."""

    @seed(1)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(examples)
    def show_one(example: Example) -> None:
        show(example)

    show_one()
