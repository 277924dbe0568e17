"""Goals of many variables: chains, independent ones, services on a chain, all entangled."""

from collections.abc import Mapping
from random import Random

from haptera.model.parts import Change, Look, Requirement, Step
from haptera.planner.domain.problem import Problem

UNKNOWN = "unknown"
SWITCH = (UNKNOWN, "off", "on")
Parts = list[Look | Step]


def problem(parts: Parts) -> Problem:
    """All that the parts look at, each with the outcomes of its look."""
    looks = tuple(part for part in parts if isinstance(part, Look))
    steps = tuple(part for part in parts if isinstance(part, Step))
    values = {look.at: (UNKNOWN, *look.outcomes) for look in looks}
    return Problem(values, {}, looks, steps)


def switch(name: str, needs: Mapping[str, str], steps_need: Mapping[str, str]) -> Parts:
    """A variable that is looked at, switched on and switched off."""
    required = conditions(steps_need)
    on, off = Change(name, ("off",), "on"), Change(name, ("on",), "off")
    return [
        Look("m", f"look_{name}", "k", name, SWITCH[1:], conditions(needs)),
        Step("m", f"start_{name}", "k", (on,), required),
        Step("m", f"stop_{name}", "k", (off,), required),
    ]


def independent(count: int) -> Parts:
    return [part for number in range(count) for part in switch(f"v{number}", {}, {})]


def in_chain(count: int) -> Parts:
    """Each can be known and switched only while the one before it is on."""
    parts = switch("c0", {}, {})
    for number in range(1, count):
        needs = {f"c{number - 1}": "on"}
        parts += switch(f"c{number}", needs, needs)
    return parts


def in_sequence(count: int) -> Parts:
    """Each can be switched only while the one before it is on, but always be known."""
    parts = switch("c0", {}, {})
    for number in range(1, count):
        parts += switch(f"c{number}", {}, {f"c{number - 1}": "on"})
    return parts


def services(chain: int, count: int) -> Parts:
    """Services that all hang on the end of one chain."""
    needs = {f"c{chain - 1}": "on"}
    names = [f"s{number}" for number in range(count)]
    return in_chain(chain) + [part for name in names for part in switch(name, needs, needs)]


def entangled(count: int, random: Random) -> Parts:
    """Each goes in a circle of three values, and each of its steps needs values of three others."""
    parts: Parts = []
    for number in range(count):
        name = f"v{number}"
        others = [f"v{other}" for other in range(count) if other != number]
        parts.append(Look("m", f"look_{name}", "k", name, tuple("123")))
        for source, target in zip("123", "231", strict=True):
            two, three, bar = random.sample(others, 3)
            parts.append(
                Step(
                    "m",
                    f"{name}_to_{target}",
                    "k",
                    (Change(name, (source,), target),),
                    tuple(Requirement(one, tuple(random.sample("123", 2))) for one in (two, three)),
                    (Requirement(bar, (random.choice("123"),)),),
                    cost=random.randint(1, 5),
                )
            )
    return parts


def joint(groups: int, each: int, steps: int, random: Random) -> Parts:
    """Groups of variables that steps change together, each needing something of another group."""
    names = [[f"g{group}v{number}" for number in range(each)] for group in range(groups)]
    parts: Parts = [
        Look("m", f"look_{name}", "k", name, tuple("1234")) for mine in names for name in mine
    ]
    for group, mine in enumerate(names):
        others = [name for some in names if some is not mine for name in some]
        for number in range(steps):
            changes = tuple(_drawn_change(name, random) for name in mine)
            needs = (Requirement(random.choice(others), tuple(random.sample("1234", 2))),)
            parts.append(Step("m", f"s{group}_{number}", "k", changes, needs))
    return parts


def _drawn_change(name: str, random: Random) -> Change:
    source, target = random.sample("1234", 2)
    return Change(name, (source,), target)


def drawn(problem: Problem, random: Random) -> dict[str, str]:
    """A known value for each variable."""
    return {name: random.choice(values[1:]) for name, values in problem.variables.items()}


def conditions(values: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(name, (value,)) for name, value in values.items())
