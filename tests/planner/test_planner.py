"""The planner says what the plain model says: cost, doubt, reason, and a chain that holds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.model.chain import Chain, Do, Find, NoChain, ReasonKind
from haptera.model.parts import Look, Step
from haptera.planner.domain.bars import NO_BARS, Bars
from haptera.planner.domain.domain import compile_class
from haptera.planner.domain.problem import check
from haptera.planner.planner import plan
from tests.planner.dice import Seeded
from tests.planner.planner_model import Failures, Frozen, Model, State, freeze
from tests.planner.strategies import Question, questions
from tests.planner.strategies import question as drawn_with

# Shrinking takes up to five minutes; to end it sooner would hide the example.
pytestmark = pytest.mark.timeout(360)

SHARES_EXAMPLES = 400

T = TypeVar("T")


def ask(question: Question, barred: Bars = NO_BARS) -> Chain | NoChain:
    domain = compile_class(question.problem)
    start = domain.start(question.observed, question.remembered)
    return plan(domain, start, question.desired, barred=barred)


def follow(question: Question, chain: Chain) -> list[State]:
    """The states of a chain in the plain model, each link of it found to be possible."""
    model, state = question.model, question.start
    doubted = frozenset(model.remembered(state) if chain.doubts else ())
    states = [state]
    for link in chain.links:
        if isinstance(link, Find):
            could = model.expectations(state, link.look, doubted)
            assert link.expect in could
            assert link.hoped == (could != {state[link.look.at].removesuffix("?")})
            state = state | {link.look.at: link.expect}
            doubted -= {link.look.at}
        else:
            assert model.applicable(state, link.step)
            state = model.strip(model.changed(state, link.step))
            doubted -= {one.variable for one in link.step.changes}
        states.append(state)
    return states


def known(question: Question, state: State) -> State:
    model = question.model
    return {name: value for name, value in state.items() if model.is_known(name, value)}


def hold_to_model(question: Question, answer: Chain | NoChain) -> None:
    model, start = question.model, question.start
    if isinstance(answer, NoChain):
        assert model.answer(start, question.desired) == (None, False)
        assert answer.reason.kind == model.reason(start, question.desired)
        waits = dict(answer.reason.waits_for)
        assert waits in (model.waits(start, question.desired) if waits else [{}])
        return
    states = follow(question, answer)
    assert list(answer.states) == [known(question, state) for state in states]
    assert question.desired.items() <= states[-1].items()
    assert answer.cost == sum(part_of(link).cost for link in answer.links)
    assert (answer.cost, answer.doubts) == model.answer(start, question.desired)
    assert answer.optimal


def from_memory(question: Question) -> Question:
    """The same, with nothing known for sure any more."""
    memory = {**question.remembered, **question.observed}
    return replace(question, observed={}, remembered=memory)


def part_of(link: Find | Do) -> Look | Step:
    return link.look if isinstance(link, Find) else link.step


@given(questions())
def test_an_answer_is_the_plain_models(question: Question) -> None:
    check(question.problem)
    hold_to_model(question, ask(question))


@given(questions())
def test_an_answer_from_memory_alone_is_the_plain_models(question: Question) -> None:
    question = from_memory(question)
    hold_to_model(question, ask(question))


@given(questions(), st.data())
def test_what_is_barred_is_not_tried_again_and_the_rest_of_the_goal_is_brought_about(
    question: Question, data: st.DataObject
) -> None:
    looks = frozenset(draw_some(data, [look.path for look in question.problem.looks]))
    failed = draw_failures(question, data)
    answer = ask(question, bars(question, looks, failed))
    model, start, goal = question.model, question.start, question.desired
    cost, doubts = model.for_goal(goal).answer(start, goal, looks, failed)
    free, _ = model.answer(start, goal)
    if cost is None and free is not None:
        goal = model.rest(start, goal, looks, failed)
        cost, doubts = model.for_goal(goal).answer(start, goal, looks, failed)
    if isinstance(answer, NoChain):
        assert cost in (0, None)
        assert (answer.reason.kind is ReasonKind.NO_PROGRESS) == (free is not None)
        return
    assert (answer.cost, answer.doubts) == (cost, doubts)
    states = follow(question, answer)
    assert goal.items() <= states[-1].items()
    assert not answer.links or part_of(answer.links[0]).path not in looks
    for link, state in zip(answer.links, states, strict=False):
        assert not model.is_barred(part_of(link), state, failed)


def draw_some(data: st.DataObject, some: Sequence[T]) -> list[T]:
    return data.draw(st.lists(st.sampled_from(some), max_size=4)) if some else []


def draw_failures(question: Question, data: st.DataObject) -> Failures:
    """Steps that have failed in states on the way, the first as likely as all others."""
    answer = ask(question)
    way = follow(question, answer) if isinstance(answer, Chain) else [question.start]
    states = [freeze(state) for state in (*[way[0]] * len(way), *way)]
    paths = [step.path for step in question.problem.steps]
    return frozenset(draw_some(data, [(path, state) for path in paths for state in states]))


def bars(question: Question, looks: frozenset[str], failed: Failures) -> Bars:
    domain = compile_class(question.problem)

    def word(frozen: Frozen) -> int:
        state = dict(frozen)
        memory = {name: state[name].removesuffix("?") for name in question.model.remembered(state)}
        return domain.start(known(question, state), memory)

    return Bars(looks, frozenset((path, word(state)) for path, state in failed))


@given(questions(), st.randoms(use_true_random=False))
def test_the_order_in_which_parts_are_written_does_not_matter(
    question: Question, random: Random
) -> None:
    problem = question.problem
    looks, steps = list(problem.looks), list(problem.steps)
    random.shuffle(looks)
    random.shuffle(steps)
    shuffled = replace(problem, looks=tuple(looks), steps=tuple(steps))
    assert ask(replace(question, problem=shuffled)) == ask(question)


@pytest.mark.slow
def test_most_examples_have_something_to_plan() -> None:
    """On a strategy whose examples are dull, a planted bug passes hundreds of them."""
    counts: Counter[str] = Counter()
    for number in range(SHARES_EXAMPLES):
        question = drawn_with(Seeded(number))
        counts.update(["examples", *traits(question)])
        recalled = ask(from_memory(question))
        counts["doubts"] += isinstance(recalled, Chain) and recalled.doubts
    shares = {name: number / counts["examples"] for name, number in counts.items()}
    assert shares["three parts"] >= 1 / 3, shares
    for trait in ("strip", "several variables", "exclude matters", "no chain"):
        assert shares[trait] >= 1 / 10, shares
    for kind in ("unknowable-goal", "no-step", "waits", "blocked", "doubts"):
        assert counts[kind] > 0, counts


def traits(question: Question) -> set[str]:
    """What makes an example worth trying, found by the plain model but for the chain itself."""
    answer = ask(question)
    found = {"exclude matters"} if exclude_matters(question) else set()
    if isinstance(answer, NoChain):
        return found | {"no chain", answer.reason.kind.value}
    model = question.model
    states = follow(question, answer)
    for state, link in zip(states, answer.links, strict=False):
        if isinstance(link, Do):
            changed = model.changed(state, link.step)
            found |= {"strip"} if model.strip(changed) != changed else set()
            found |= {"several variables"} if len(link.step.changes) > 1 else set()
    return found | ({"three parts"} if len(answer.links) >= 3 else set())


def exclude_matters(question: Question) -> bool:
    problem, start = question.problem, question.start
    without = replace(
        problem,
        looks=tuple(replace(look, excludes=()) for look in problem.looks),
        steps=tuple(replace(step, excludes=()) for step in problem.steps),
    )
    answer = Model(without).answer(start, question.desired)
    return answer != question.model.answer(start, question.desired)
