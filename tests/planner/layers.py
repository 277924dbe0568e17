"""Problems in layers, as most kinds are: what is higher is looked at and changed while what is
lower is as desired, or nearly so.
"""

from random import Random

from haptera.model.parts import Change, Look, Requirement, Step
from haptera.planner.domain.problem import Problem

UNKNOWN = "unknown"
VARIABLES_MAX = 4


def layered(random: Random) -> tuple[Problem, dict[str, str]]:
    """A problem and its goal; each condition mostly wants what the goal does, or more than that."""
    names = "abcd"[: random.randint(2, VARIABLES_MAX)]
    variables = {name: (UNKNOWN, *"123"[: random.randint(2, 3)]) for name in names}
    goal = {name: random.choice(values[1:]) for name, values in variables.items()}
    looks: list[Look] = []
    steps: list[Step] = []
    for number, name in enumerate(names):
        lower = names[:number]
        looks.append(_look(random, variables, goal, name, lower))
        others = lower if random.random() < 11 / 12 else names.replace(name, "")
        values = [value for value in variables[name][1:] if random.random() < 9 / 10]
        steps += [_step(random, variables, goal, name, value, others) for value in values]
    wanted = {name: value for name, value in goal.items() if random.random() < 4 / 5}
    return Problem(variables, {}, tuple(looks), tuple(steps)), wanted or goal


def _look(
    random: Random,
    variables: dict[str, tuple[str, ...]],
    goal: dict[str, str],
    name: str,
    lower: str,
) -> Look:
    requires = _conditions(random, variables, goal, lower)
    outcomes = variables[name][1:]
    if random.random() < 1 / 6:
        outcomes = tuple(random.sample(outcomes, random.randint(1, len(outcomes))))
    return Look("m", f"look_{name}", "k", name, outcomes, requires, cost=random.randint(1, 2))


def _step(
    random: Random,
    variables: dict[str, tuple[str, ...]],
    goal: dict[str, str],
    name: str,
    source: str,
    others: str,
) -> Step:
    """From this value to another; now and then from all, and now and then only expected."""
    target = random.choice([value for value in variables[name][1:] if value != source])
    sources = (source,) if random.random() < 5 / 6 else ("*",)
    change = Change(name, sources, target, expected=random.random() < 1 / 6)
    conditions = _conditions(random, variables, goal, others)
    part = f"{name}_{source}"
    if conditions and random.random() < 1 / 8:
        return Step("m", part, "k", (change,), excludes=conditions, cost=random.randint(1, 3))
    return Step("m", part, "k", (change,), conditions, cost=random.randint(1, 3))


def _conditions(
    random: Random, variables: dict[str, tuple[str, ...]], goal: dict[str, str], names: str
) -> tuple[Requirement, ...]:
    """On one or two of these; the value of the goal, mostly, alone or with another."""
    count = min(len(names), random.choice([0, 1, 1, 1, 2]))
    found = []
    for name in random.sample(names, count):
        values = {goal[name] if random.random() < 11 / 12 else random.choice(variables[name][1:])}
        if random.random() < 1 / 4:
            values.add(random.choice(variables[name][1:]))
        found.append(Requirement(name, tuple(sorted(values))))
    return tuple(found)
