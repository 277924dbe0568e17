"""Problems of a few small variables and parts at random: all sorts of faults are among them."""

from random import Random

from haptera.model.errors import HapteraError
from haptera.model.parts import ANY, Change, Look, Requirement, Step
from haptera.planner.domain.problem import Problem, check

UNKNOWN = "unknown"
BORROWED = "node.x"


def problem(random: Random, names: str = "abc", borrowed: tuple[str, ...] = ()) -> Problem:
    """One that is well-formed; of what is not, another is drawn.

    `borrowed` are the values of a borrowed variable; without them, some problems have one.
    """
    while True:
        drawn = _problem(random, names, borrowed)
        try:
            check(drawn)
        except HapteraError:
            continue
        return drawn


def goal(random: Random, drawn: Problem) -> dict[str, str]:
    """Known values of one or two variables that are not borrowed."""
    names = [name for name in drawn.variables if name != BORROWED]
    chosen = random.sample(names, random.choice([1, 2, 2]))
    return {name: random.choice(drawn.variables[name][1:]) for name in chosen}


def _problem(random: Random, names: str, borrowed: tuple[str, ...]) -> Problem:
    names = names[: random.choice([2, 3, 3])]
    variables = {name: _values(random) for name in names}
    if borrowed:
        variables[BORROWED] = borrowed
    elif random.random() < 0.4:
        variables[BORROWED] = _values(random)
    looks = [
        _look(random, variables, name, number)
        for name in names
        for number in range(random.choice([0, 1, 1, 1, 2, 2]))
    ]
    planted = random.randrange(6)
    if planted == 0 and len(names) == 2:
        looks += _half(random, variables)
    steps = [_step(random, variables, number) for number in range(random.randint(1, 5))]
    if planted == 1:
        steps += _undoing(random, variables)
    if planted == 2:
        looks += _split(random, variables)
    return Problem(variables, {"p": None}, tuple(looks), tuple(steps))


def _undoing(random: Random, variables: dict[str, tuple[str, ...]]) -> list[Step]:
    """Two steps that each take away what the other brings about, if nothing comes between."""
    steps = []
    for number, names in enumerate([[*variables][:2], [*variables][1::-1]]):
        made, spoilt = ((name, random.choice(variables[name][1:])) for name in names)
        other = random.choice(variables[spoilt[0]][1:])
        changes = Change(made[0], (ANY,), made[1]), Change(spoilt[0], (ANY,), other)
        steps.append(Step("mn"[number], f"undo{number}", "k", changes))
    return steps


def _split(random: Random, variables: dict[str, tuple[str, ...]]) -> list[Look]:
    """Two looks at one variable, each for its own value of another."""
    first, second, *_ = variables
    values = variables[first][1:]
    requires = [(Requirement(first, (value,)),) for value in (values[0], values[-1])]
    return [
        Look("m", f"split{number}", "k", second, _some(random, variables[second][1:]), one)
        for number, one in enumerate(requires)
    ]


def _half(random: Random, variables: dict[str, tuple[str, ...]]) -> list[Look]:
    """A look at a new variable, which finds two of its three values only."""
    name = "d"
    variables[name] = (UNKNOWN, "1", "2", "3")
    return [
        Look(
            "m",
            "look_d",
            "k",
            name,
            ("1", "2"),
            _conditions(random, variables, [*variables][:1], 0.5),
        )
    ]


def _values(random: Random) -> tuple[str, ...]:
    return (UNKNOWN, *"123"[: random.choice([1, 2, 2, 2, 3])])


def _look(random: Random, variables: dict[str, tuple[str, ...]], name: str, number: int) -> Look:
    before = [one for one in variables if one < name or one == BORROWED]
    others = [one for one in variables if one != name]
    return Look(
        random.choice("mn"),
        f"look_{name}{number}",
        "k",
        name,
        _some(random, variables[name][1:]),
        (*_conditions(random, variables, before, 0.7), *_on_attribute(random)),
        _conditions(random, variables, others, 0.15),
    )


def _step(random: Random, variables: dict[str, tuple[str, ...]], number: int) -> Step:
    names = [name for name in variables if name != BORROWED]
    changed = random.sample(names, random.choice([1, 1, 1, 2]))
    others = [name for name in variables if name not in changed]
    changes = tuple(_change(random, name, variables[name]) for name in changed)
    values = variables[changed[0]]
    return Step(
        random.choice("mn"),
        f"step{number}",
        "k",
        changes,
        (*_conditions(random, variables, others, 0.4), *_on_attribute(random)),
        _conditions(random, variables, others, 0.2, unknown=True),
        fails_to=random.choice(values[1:]) if random.random() < 0.15 else None,
    )


def _change(random: Random, name: str, values: tuple[str, ...]) -> Change:
    target = random.choice(values[1:])
    sources = (ANY,) if random.random() < 0.25 else _some(random, values)
    return Change(name, sources, target, expected=random.random() < 0.3)


def _conditions(
    random: Random,
    variables: dict[str, tuple[str, ...]],
    names: list[str],
    share: float,
    *,
    unknown: bool = False,
) -> tuple[Requirement, ...]:
    chosen = [name for name in names if random.random() < share]
    return tuple(
        Requirement(name, _some(random, variables[name][0 if unknown else 1 :])) for name in chosen
    )


def _on_attribute(random: Random) -> tuple[Requirement, ...]:
    return (Requirement("p", (random.choice("12"),)),) if random.random() < 0.15 else ()


def _some(random: Random, values: tuple[str, ...]) -> tuple[str, ...]:
    chosen = random.sample(values, random.choice([1, 1, len(values)]))
    return tuple(sorted(chosen, key=values.index))
