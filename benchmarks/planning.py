"""Problems for the planner's benchmark, and the same ones in the words of a classical planner."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from haptera.model.parts import Look, Requirement, Step
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.problem import Problem
from haptera.planner.explain.problem_json import ProblemQuestion, problem_from_json

VALUES = ("a", "b")
ENTANGLED_VALUES = ("a", "b", "c")
# Of entangled problems: steps for each variable, and how many variables the goal names.
PACES = 3
WANTED_MAX = 6


@dataclass(frozen=True)
class Case:
    """One problem with its start and goal."""

    name: str
    question: ProblemQuestion

    @property
    def problem(self) -> Problem:
        return self.question.problem


@dataclass(frozen=True)
class Operator:
    """A part as a classical planner has it: facts that must hold, and that are added or deleted."""

    name: str
    needs: frozenset[str]
    adds: frozenset[str]
    deletes: frozenset[str]


def independent(count: int) -> Case:
    """Variables that have nothing to do with each other, all to be turned."""
    names = _names(count)
    data = _stacked(dict.fromkeys(names))
    given = {"observed": dict.fromkeys(names, "a"), "desired": dict.fromkeys(names, "b")}
    return Case(f"{count} independent", problem_from_json(data | given))


def row(count: int) -> Case:
    """Each hangs on the one before it; only the first is known."""
    names = _names(count)
    data = _stacked(dict(zip(names, [None, *names[:-1]], strict=True)))
    remembered = dict.fromkeys(names[1:], "a")
    given = {"observed": {names[0]: "a"}, "remembered": remembered}
    question = problem_from_json(data | given | {"desired": dict.fromkeys(names, "b")})
    return Case(f"row of {count}", question)


def services(below: int, count: int) -> Case:
    """A row, and on its top services that are independent of each other."""
    names = _names(below)
    tops = [f"s{number:02}" for number in range(count)]
    hangs: dict[str, str | None] = dict(zip(names, [None, *names[:-1]], strict=True))
    data = _stacked(hangs | dict.fromkeys(tops, names[-1]))
    remembered = dict.fromkeys([*names[1:], *tops], "a")
    given = {"observed": {names[0]: "a"}, "remembered": remembered}
    question = problem_from_json(data | given | {"desired": dict.fromkeys([*names, *tops], "b")})
    return Case(f"row of {below} + {count} services", question)


def entangled(count: int, seed: int) -> Case:
    """Steps that change, require and exclude each other's variables, drawn along a walk.

    Each can be taken where the walk was when it was drawn; where the walk ends is the goal.
    """
    random = Random(seed)
    names = _names(count)
    looks = [_drawn_look(random, name, names[:number]) for number, name in enumerate(names)]
    last = {name: random.choice(ENTANGLED_VALUES) for name in names}
    known = _knowable(last, last, looks)
    data: dict[str, Any] = {
        "variables": {name: ["unknown", *ENTANGLED_VALUES] for name in names},
        "looks": looks,
        "observed": dict(known),
        "remembered": dict(last),
    }
    steps: list[dict[str, Any]] = []
    while len(steps) < PACES * count:
        found = [one["at"] for one in looks if one["at"] not in known and _open(one, known)]
        if found and random.random() < 1 / 2:
            known[found[0]] = last[found[0]]
            continue
        step = _drawn_step(random, known, last, len(steps))
        steps.append(step)
        last |= {name: target for name, (_, target) in step["changes"].items()}
        known = _knowable(known | step["changes"], last, looks)
    goal = [name for name in sorted(known) if known[name] != data["observed"].get(name)]
    data["desired"] = {name: known[name] for name in goal[:WANTED_MAX]}
    return Case(f"{count} entangled, seed {seed}", problem_from_json({**data, "steps": steps}))


def _names(count: int) -> list[str]:
    return [f"v{number:02}" for number in range(count)]


def _stacked(hangs: dict[str, str | None]) -> dict[str, Any]:
    """A look and two steps for each variable, where the one that it hangs on is `b`."""
    looks, steps = [], []
    for name, below in hangs.items():
        needs = {"requires": {} if below is None else {below: "b"}}
        looks.append({"name": f"look_{name}", "at": name, "outcomes": list(VALUES), **needs})
        for source, target in ("ab", "ba"):
            changes = {name: [source, target]}
            steps.append({"name": f"{source}_{target}_{name}", "changes": changes, **needs})
    variables = {name: ["unknown", *VALUES] for name in hangs}
    return {"variables": variables, "looks": looks, "steps": steps}


def _drawn_look(random: Random, name: str, before: list[str]) -> dict[str, Any]:
    requires = {random.choice(before): random.choice(ENTANGLED_VALUES)} if before else {}
    some = requires if random.random() < 1 / 2 else {}
    return {
        "name": f"look_{name}",
        "at": name,
        "outcomes": list(ENTANGLED_VALUES),
        "requires": some,
    }


def _drawn_step(
    random: Random, known: dict[str, str], last: dict[str, str], number: int
) -> dict[str, Any]:
    """One that can be taken where this is known."""
    changed = random.sample(sorted(known), min(len(known), random.choice([1, 1, 1, 2])))
    others = sorted(known.keys() - changed)
    required = random.sample(others, min(len(others), random.randint(1, 2)))
    excluded = random.choice(sorted(last.keys() - changed - set(required)))
    targets = {name: _other(random, known[name]) for name in changed}
    return {
        "name": f"step{number:03}",
        "changes": {name: [known[name], targets[name]] for name in changed},
        "requires": {name: known[name] for name in required},
        "excludes": {excluded: _other(random, last[excluded])},
    }


def _other(random: Random, value: str) -> str:
    return random.choice([one for one in ENTANGLED_VALUES if one != value])


def _knowable(
    names: Iterable[str], last: dict[str, str], looks: list[dict[str, Any]]
) -> dict[str, str]:
    """What can be known of these, if all is as it was last."""
    known: dict[str, str] = {}
    for look in looks:  # in the order of what they rest on
        if look["at"] in names and _open(look, known):
            known[look["at"]] = last[look["at"]]
    return known


def _open(look: dict[str, Any], known: dict[str, str]) -> bool:
    return all(known.get(name) == value for name, value in look["requires"].items())


# In the words of a classical planner


def facts_at_start(case: Case, domain: Domain) -> frozenset[str]:
    """What is known, and what was known last, which is so of every variable of these problems."""
    start = domain.start(case.question.observed, case.question.remembered)
    known = domain.known(start)
    last = known | domain.remembered(start)
    facts = {f"known {name}={value}" for name, value in known.items()}
    for name, values in case.problem.variables.items():
        facts.add(f"last {name}={last[name]}")
        facts |= {f"not {name}={value}" for value in values[1:] if value != last[name]}
    return frozenset(facts)


def facts_wanted(case: Case) -> frozenset[str]:
    return frozenset(f"known {name}={value}" for name, value in case.question.desired.items())


def operators(problem: Problem) -> list[Operator]:
    """Looks find what was known last; a step forgets all that rests on what it changes.

    Exact where each variable has one look that yields every value, and conditions one value each.
    """
    found = [operator for look in problem.looks for operator in _found_by(look)]
    return found + [_done_by(step, problem) for step in problem.steps]


def _found_by(look: Look) -> Iterator[Operator]:
    needs = frozenset(_known(look.requires))
    for value in look.outcomes:
        known = frozenset([f"known {look.at}={value}"])
        yield Operator(look.name, needs | {f"last {look.at}={value}"}, known, frozenset())


def _done_by(step: Step, problem: Problem) -> Operator:
    after = {one.variable: one.target for one in step.changes}
    forgotten = _forgotten(after, problem.looks)
    needs = {*_known(step.requires)}
    needs |= {f"not {one.name}={value}" for one in step.excludes for value in one.values}
    adds, deletes = set(), set()
    for change in step.changes:
        name, source, target = change.variable, change.sources[0], change.target
        needs.add(f"known {name}={source}")
        adds |= {f"last {name}={target}", f"not {name}={source}"}
        deletes |= {f"last {name}={source}", f"not {name}={target}", f"known {name}={source}"}
        if name not in forgotten:
            adds.add(f"known {name}={target}")
    for name in forgotten:
        deletes |= {f"known {name}={value}" for value in problem.variables[name][1:]}
    return Operator(step.name, frozenset(needs), frozenset(adds), frozenset(deletes))


def _forgotten(after: dict[str, str], looks: Iterable[Look]) -> set[str]:
    """What cannot be looked at any more, and what rests on that."""
    forgotten: set[str] = set()
    for look in looks:  # in the order of what they rest on
        for one in look.requires:
            lost = one.name in after and after[one.name] not in one.values
            if lost or one.name in forgotten:
                forgotten.add(look.at)
    return forgotten


def _known(conditions: Iterable[Requirement]) -> Iterator[str]:
    for one in conditions:
        yield f"known {one.name}={one.values[0]}"
