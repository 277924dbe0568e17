"""What is said to be in the way is: without it there is a chain, and with any part of it none."""

from collections import Counter
from dataclasses import dataclass, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from haptera.model.chain import Chain, Hurdle, NoChain, Reason, ReasonKind, Role
from haptera.model.parts import Look, Part, Requirement
from haptera.planner.domain.problem import subjects
from tests.planner.planner_model import Model, State
from tests.planner.strategies import UNKNOWN, Question, questions, show_each
from tests.planner.test_planner import ask, from_memory

pytestmark = pytest.mark.timeout(360)

SHARES_EXAMPLES = 300


@dataclass(frozen=True)
class Relaxed(Model):
    """The plain model as though it did not matter how some variables stand."""

    hurdles: frozenset[Hurdle] = frozenset()

    def spared(self, role: Role) -> set[str]:
        return {one.variable for one in self.hurdles if one.role is role}

    def required(self, state: State, conditions: tuple[Requirement, ...]) -> bool:
        return super().required(state, self.left(conditions))

    def excluded(self, state: State, conditions: tuple[Requirement, ...]) -> bool:
        return super().excluded(state, self.left(conditions))

    def left(self, conditions: tuple[Requirement, ...]) -> list[Requirement]:
        spared = self.spared(Role.CONDITION)
        return [one for one in conditions if one.name not in spared]

    def expectations(self, state: State, look: Look, doubted: frozenset[str]) -> set[str]:
        if look.at not in self.spared(Role.READING):
            return super().expectations(state, look, doubted)
        unknown = state | {look.at: self.unknown(look.at)}
        return super().expectations(unknown, look, doubted)

    def matches(self, name: str, status: str, sources: tuple[str, ...], target: str) -> bool:
        spared = name in self.spared(Role.SOURCE)
        return spared or super().matches(name, status, sources, target)


def relaxed(question: Question, hurdles: frozenset[Hurdle]) -> bool:
    """Whether there is a chain without these."""
    model = Relaxed(question.problem, hurdles)
    return model.cheapest(question.start, question.desired) is not None


@st.composite
def held_up(draw: DrawFn) -> Question:
    """A question whose chains are barred, one part at a time, until there is none."""
    question = draw(questions())
    if draw(st.booleans()):
        question = from_memory(question)
    answer = ask(question)
    while isinstance(answer, Chain) and answer.links:
        question = barred(draw, question, draw(st.sampled_from(answer.links)).part)
        answer = ask(question)
    assume(isinstance(answer, NoChain) and answer.reason.kind is ReasonKind.BLOCKED)
    return question


def barred(draw: DrawFn, question: Question, part: Part) -> Question:
    """This part excluded by how a variable stands, which is at times one that only looks touch."""
    problem, given, start = question.problem, "given", question.start
    if given not in problem.variables:
        variables = {**problem.variables, given: (UNKNOWN, "1", "2")}
        look = Look("m", f"look_{given}", "k", given, ("1", "2"))
        problem = replace(problem, variables=variables, looks=(*problem.looks, look))
        question = replace(question, observed={**question.observed, given: "1"})
        start = start | {given: "1"}
    own = subjects(part)
    names = [name for name in start if name not in own and start[name] != UNKNOWN]
    name = draw(st.sampled_from([*names, given]))
    bar = Requirement(name, (start[name].removesuffix("?"),))
    shut = replace(part, excludes=(*(one for one in part.excludes if one.name != name), bar))
    looks = tuple(shut if one is part else one for one in problem.looks)
    steps = tuple(shut if one is part else one for one in problem.steps)
    return replace(question, problem=replace(problem, looks=looks, steps=steps))


def hold_to_model(question: Question, reason: Reason) -> None:
    hurdles = frozenset(reason.hurdles)
    assert relaxed(question, hurdles)
    assert not any(relaxed(question, hurdles - {one}) for one in hurdles)
    if len(hurdles) > 1:
        assert f"{len(hurdles)} obstacles: " in reason.text
        singles = [Hurdle(name, Role.CONDITION) for name in question.problem.variables]
        assert not any(relaxed(question, frozenset((one,))) for one in singles)
    assert all(one.variable in reason.text for one in hurdles)
    if reason.wants:
        model, start = question.model, question.start
        assert {name for name, _ in reason.wants} == {one.variable for one in hurdles}
        changed = model.strip(start | dict(reason.wants))
        assert model.cheapest(changed, question.desired) is not None


@given(held_up())
def test_without_what_is_in_the_way_there_is_a_chain(question: Question) -> None:
    answer = ask(question)
    assert isinstance(answer, NoChain)
    hold_to_model(question, answer.reason)


@pytest.mark.campaign
def test_hurdles_of_each_role_are_found() -> None:
    counts: Counter[str] = Counter()

    def count(question: Question) -> None:
        answer = ask(question)
        assert isinstance(answer, NoChain)
        hurdles = answer.reason.hurdles
        counts.update({one.role for one in hurdles})
        counts.update(["examples", "one" if len(hurdles) == 1 else "several"])
        counts["wants"] += bool(answer.reason.wants)

    show_each(held_up(), SHARES_EXAMPLES, count)
    shares = {name: number / counts["examples"] for name, number in counts.items()}
    assert shares["wants"] >= 1 / 2, shares
    assert shares["several"] >= 1 / 20, shares
    for role in Role:
        assert counts[role] > 0, counts
