"""Why a chain is as it is: what each link serves, and what any other chain would cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import assume, given

from haptera.model.answers.explained import Alternative, Explained
from haptera.model.chain import Chain, Find, Hurdle, Link, Role
from haptera.model.parts import Change, Part, Step
from haptera.planner.domain.bars import NO_BARS, Bars
from haptera.planner.domain.domain import compile_class
from haptera.planner.domain.problem import Problem, subjects
from haptera.planner.domain.replay import link_name, replay
from haptera.planner.explain.causal_links import Need, purposes
from haptera.planner.explain.explain import PlanQuestion, cheaper, explain, nearest
from haptera.planner.search.search_budget import SearchBudget
from tests.planner.planner_model import Model, Place, State, freeze
from tests.planner.strategies import Question, questions
from tests.planner.test_excuses import Relaxed, held_up
from tests.planner.test_planner import ask, follow

pytestmark = pytest.mark.timeout(360)


def asked(question: Question, barred: Bars = NO_BARS) -> PlanQuestion:
    domain = compile_class(question.problem)
    start = domain.start(question.observed, question.remembered)
    return PlanQuestion(domain, start, question.desired, SearchBudget(), barred)


def chain_of(question: Question) -> Chain:
    answer = ask(question)
    assume(isinstance(answer, Chain) and answer.links)
    assert isinstance(answer, Chain)
    return answer


@dataclass(frozen=True)
class Without(Model):
    """The plain model in which a part can never be taken; what is known still rests on it."""

    path: str = ""

    def after(self, place: Place) -> Iterator[tuple[Part, str | None, Place]]:
        return (one for one in super().after(place) if one[0].path != self.path)


@given(questions())
def test_the_runner_up_is_the_cheapest_chain_without_one_of_the_parts(question: Question) -> None:
    chain, start = chain_of(question), question.start
    doubted = question.model.remembered(start) if chain.doubts else ()
    costs = [
        Without(question.problem, link.part.path).cheapest(start, question.desired, doubted=doubted)
        for link in chain.links
    ]
    least = min((cost for cost in costs if cost is not None), default=None)
    found = explain(asked(question), chain)
    assert (found.runner_up and found.runner_up.cost) == least
    assert found.no_other == (least is None)


def test_a_runner_up_to_one_part_of_a_goal_costs_what_the_rest_costs_too() -> None:
    steps = [
        Step("m", name, "k", (Change(variable, ("1",), "2"),), cost=cost)
        for name, variable, cost in (("a", "a", 1), ("slow_a", "a", 9), ("b", "b", 1))
    ]
    steps.append(replace(steps[2], name="slow_b", cost=3))
    variables = dict.fromkeys("ab", ("unknown", "1", "2"))
    started, ended = {"a": "1", "b": "1"}, {"a": "2", "b": "2"}
    question = Question(Problem(variables, {}, (), tuple(steps)), started, {}, ended)
    found = explain(asked(question), ask(question))
    assert found.runner_up == Alternative("without m.b", 4, ["m.slow_b"])


def test_of_a_goal_that_is_met_there_is_nothing_to_say() -> None:
    question = Question(Problem({"a": ("unknown", "1")}, {}), {"a": "1"}, {}, {"a": "1"})
    assert explain(asked(question), ask(question)) == Explained(cost=0)


@given(questions())
def test_a_cheaper_chain_is_one_that_a_variable_left_as_it_is_stands_in_the_way_of(
    question: Question,
) -> None:
    chain, start = chain_of(question), question.start
    assume(not chain.doubts)
    touched = {name for link in chain.links for name in subjects(link.part)}
    hurdles = [Hurdle(name, Role.CONDITION) for name in question.problem.variables]
    costs = [
        (moves(question, one.variable), cost)
        for one in hurdles
        if one.variable not in touched
        for cost in [Relaxed(question.problem, frozenset((one,))).cheapest(start, question.desired)]
        if cost is not None and cost < chain.cost
    ]
    found = cheaper(asked(question), chain)
    assert (found and found.cost) == min(costs, default=(True, None))[1]


def moves(question: Question, name: str) -> bool:
    """Whether any part starts from where a variable stands, and leads to another value."""
    model, status = question.model, question.start[name]
    free = {name: status}
    looks = (replace(look, requires=(), excludes=()) for look in model.looks if look.at == name)
    found = {one for look in looks for one in model.expectations(free, look, frozenset())}
    made = {
        one.target
        for step in model.steps
        for one in step.changes
        if one.variable == name and model.matches(name, status, one.sources, one.target)
    }
    return bool((found | made) - {status.removesuffix("?")})


@given(held_up())
def test_what_is_nearest_is_the_most_of_the_goal_at_the_least_cost(question: Question) -> None:
    costs = question.model.costs((freeze(question.start), frozenset()))
    goal = question.desired.items()
    _, least = min((-len(goal & set(frozen)), cost) for (frozen, _), cost in costs.items())
    found = nearest(asked(question))
    assert (0 if found is None else found.cost) == least


@given(questions())
def test_each_link_serves_what_was_not_so_before_it_and_is_so_until_it_is_needed(
    question: Question,
) -> None:
    chain = chain_of(question)
    assume(not chain.doubts)
    states, links = follow(question, chain), chain.links
    one = asked(question)
    trail = replay(one.domain, one.start | one.domain.touched, [link_name(link) for link in links])
    assert trail is not None
    served = purposes(one.domain, question.desired, trail)
    assert all(served)
    for place, needs in enumerate(served):
        for need in needs:
            met = [is_met(question, need, links, states, number) for number in range(len(states))]
            assert not met[place]
            assert all(met[place + 1 : need.place + 1])


def is_met(
    question: Question, need: Need, links: Sequence[Link], states: list[State], number: int
) -> bool:
    """Whether a variable is as it must be, in one of the states; in the plain model."""
    model, name, state = question.model, need.field.name, states[number]
    if need.rests is not None:
        there = states[need.place]
        return model.knowable(there | {name: state[name]}, need.rests, there[need.rests])
    if need.place == len(links):
        return state[name] == question.desired[name]
    link = links[need.place]
    requires = [one for one in link.part.requires if one.name == name]
    excludes = [one for one in link.part.excludes if one.name == name]
    if name not in subjects(link.part):
        return model.required(state, requires) and not model.excluded(state, excludes)
    if isinstance(link, Find):
        open_look = replace(link.look, requires=(), excludes=())
        return link.expect in model.expectations(state, open_look, frozenset())
    (change,) = (one for one in link.step.changes if one.variable == name)
    return model.matches(name, state[name], change.sources, change.target)
