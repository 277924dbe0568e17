"""The lint finds what a look at all states finds, and each of its examples is one."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.lint.lint import lint
from haptera.model.answers.finding import Example, Finding, Rule
from haptera.model.parts import Look, Requirement, Step
from haptera.planner.domain.problem import Problem
from tests.lint import lint_strategies
from tests.lint.lint_model import Key, PlainClass, PlainLint
from tests.lint.lint_strategies import UNKNOWN
from tests.planner import shapes
from tests.planner.planner_model import Model, State

pytestmark = pytest.mark.timeout(360)

# What a state that is told shows: a part that cannot be taken there.
SHUT = (Rule.NEVER_OPENS, Rule.NEVER_APPLIES, Rule.NEVER_COMES_UP)


@given(st.integers(0, 2**64))
def test_what_is_found_is_what_a_look_at_all_states_finds(seed: int) -> None:
    problem = lint_strategies.problem(Random(seed))
    found = {key for one in lint("k", problem) for key in keys(one)}
    assert found == PlainLint(problem).found()


@given(st.integers(0, 2**64))
def test_each_example_is_a_state_that_shows_the_fault(seed: int) -> None:
    problem = lint_strategies.problem(Random(seed))
    for finding in lint("k", problem):
        for example in finding.examples:
            check_example(problem, finding, example)


@given(st.integers(0, 2**64))
def test_what_a_step_is_advised_to_require_makes_its_result_last(seed: int) -> None:
    problem = lint_strategies.problem(Random(seed))
    for finding in lint("k", problem):
        advice = (finding.fix or "").partition(", or declare")[0]
        if finding.rule is Rule.MAY_BE_LOST and advice.startswith("make it require"):
            (example,) = finding.examples
            plain = PlainClass(Model(replace(problem, attributes=dict(example.attributes))))
            (step,) = (one for one in plain.model.steps if one.path == example.part)
            named = re.findall(r"([a-z.]+)=([123](?: or [123])*)", advice)
            more = tuple(Requirement(name, tuple(values.split(" or "))) for name, values in named)
            mended = replace(step, requires=(*step.requires, *more))
            ((_, _, value),) = keys(finding)
            name, _, target = value.partition("=")
            ends = [
                plain.model.strip(plain.model.changed(state, mended))[name]
                for state in plain.states
                if plain.model.applicable(state, mended)
            ]
            assert ends
            assert set(ends) == {target}


@pytest.mark.slow
def test_each_rule_finds_something_in_some_of_the_problems_and_nothing_in_others() -> None:
    counts: Counter[Rule] = Counter()
    for seed in range(1_000):
        problem = lint_strategies.problem(Random(seed))
        counts.update({one.rule for one in lint("k", problem)})
    rules = list(Rule)
    of_modules = rules[rules.index(Rule.MALFORMED) + 1 : rules.index(Rule.UNKNOWABLE_GOAL)]
    assert {rule for rule in of_modules if not 10 <= counts[rule] <= 900} == set()


@pytest.mark.parametrize(
    "parts",
    [
        shapes.in_chain(40),
        shapes.in_sequence(40),
        shapes.independent(40),
        shapes.services(4, 36),
        shapes.entangled(40, Random(1)),
    ],
    ids=["chain", "sequence", "independent", "services", "entangled"],
)
def test_forty_variables_without_a_fault_are_found_to_have_none(parts: shapes.Parts) -> None:
    assert lint("k", shapes.problem(parts)) == ()


def test_what_is_too_large_is_said_not_to_be_checked() -> None:
    # Each pigeon is known while some hole holds it; there is one hole too few.
    pigeons, holes = "123456789", "abcdefgh"
    parts: shapes.Parts = [Look("m", f"look_{hole}", "k", hole, tuple(pigeons)) for hole in holes]
    for one, hole in product(pigeons, holes):
        requires = shapes.conditions({hole: one})
        parts.append(Look("m", f"see_{one}_{hole}", "k", f"p{one}", ("here",), requires))
    all_here = shapes.conditions({f"p{one}": "here" for one in pigeons})
    parts.append(Look("m", "look_all", "k", "all", ("well",), all_here))
    found = lint("k", shapes.problem(parts))
    assert found[0].module is None
    assert {one.rule for one in found} == {Rule.NOT_CHECKED}
    assert found[0].text.startswith(
        "conditions that clash were not searched for at m.look_all: too"
    )


def keys(finding: Finding) -> set[Key]:
    """As the plain lint has it: with the value, where that matters."""
    place = finding.place.removeprefix("k.")
    match finding.rule:
        case Rule.NEVER_KEPT | Rule.MAY_BE_LOST:
            value = finding.text.removeprefix("its result ").partition(" ")[0]
        case Rule.UNDOES:
            value = finding.text.partition("; ")[2].partition(" ")[0]
        case Rule.DEAD_END | Rule.ONE_WAY:
            value = finding.examples[0].known[place]
        case Rule.UNREACHABLE_VALUE:
            listed = finding.text.partition("=")[2].removesuffix(" never occurs")
            return {(finding.rule, place, one) for one in listed.split(" or ")}
        case _:
            value = ""
    return {(finding.rule, place, value)}


def check_example(problem: Problem, finding: Finding, example: Example) -> None:
    """That the state is one, that the part leads where it is said to, and that this is a fault."""
    attributes = dict.fromkeys(problem.attributes) | dict(example.attributes)
    model = Model(replace(problem, attributes=attributes))
    before = state(model, example.known, example.remembered)
    assert model.strip(before) == before
    step = next((one for one in model.steps if one.path == example.part), None)
    if step is None:
        assert example.part is None
        after = before
    else:
        assert model.applicable(before, step)
        after = model.strip(model.changed(before, step))
        assert after == state(model, example.known_after, example.remembered_after)
    assert is_fault(model, finding, step, before, after)


def is_fault(
    model: Model, finding: Finding, step: Step | None, before: State, after: State
) -> bool:
    _, place, value = min(keys(finding))
    if finding.rule in SHUT:
        (part,) = (one for one in model.problem.parts if one.path == place)
        if isinstance(part, Look):
            return not model.expectations(before | {part.at: UNKNOWN}, part, frozenset())
        return not model.applicable(before, part)
    if finding.rule in (Rule.DEAD_END, Rule.ONE_WAY):
        reached = PlainClass(model).reach(place, value) - {value}
        return not any(model.is_known(place, one) for one in reached)
    assert step is not None
    known = {name for name, one in before.items() if model.is_known(name, one)}
    lost = {name for name in known if after[name] != before[name]}
    brought = {one.variable: one.target for one in step.changes}
    match finding.rule:
        case Rule.NO_LOOK:
            return after[place].removesuffix("?") == brought[place]
        case Rule.NEVER_KEPT | Rule.MAY_BE_LOST:
            name, _, target = value.partition("=")
            return (brought[name], after[name]) == (target, f"{target}?")
        case Rule.UNDOES:
            return bool(lost)
        case Rule.SPLIT_GROUNDS:
            return place in known - lost
        case Rule.HOPE_REPEATS:
            finds = {(look.at, outcome) for look in model.looks for outcome in look.outcomes}
            looked_at = {look.at for look in model.looks}
            return any(one[0] in looked_at and one not in finds for one in brought.items())
        case rule:
            raise AssertionError(f"{rule} shows no step")


def state(model: Model, known: Mapping[str, str], remembered: Mapping[str, str]) -> State:
    found = {name: values[0] for name, values in model.problem.variables.items()}
    return found | {name: f"{one}?" for name, one in remembered.items()} | dict(known)
