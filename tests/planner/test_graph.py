"""Graphs of classes: all that can be known, and all that leads from one to another."""

from collections.abc import Iterable, Iterator
from itertools import product
from math import prod

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haptera.model.answers.graph import DrawingView, EdgeView, GraphView, StateView, TakenView
from haptera.model.chain import Chain, Find, Link
from haptera.model.parts import Requirement
from haptera.planner.domain.domain import compile_class
from haptera.planner.domain.problem import Problem, subjects
from haptera.planner.explain.drawing import Course, drawing
from haptera.planner.explain.graph import AROUND_MAX, STATES_MAX, graphs_of
from haptera.planner.planner import plan
from tests.planner.planner_model import Model, State, freeze
from tests.planner.strategies import Question, questions
from tests.planner.test_planner import ask, follow, part_of

# Shrinking takes up to five minutes; to end it sooner would hide the example.
pytestmark = pytest.mark.timeout(360)

# Ways in which all variables of an example can stand, what cannot be known included.
WAYS_MAX = 2_000
# One graph where it is small; the groups that are small; each variable by itself.
STATES = (STATES_MAX, 6, 0)

Taken = tuple[str, str | None]


def ways(problem: Problem) -> int:
    return prod(2 * len(values) - 1 for values in problem.variables.values())


small = questions().filter(lambda one: ways(one.problem) <= WAYS_MAX)


def drawn(
    question: Question, states_max: int = STATES_MAX, around_max: int = AROUND_MAX
) -> DrawingView:
    domain = compile_class(question.problem)
    start = domain.start(question.observed, question.remembered)
    course = Course(start, question.desired, plan(domain, start, question.desired))
    graphs = graphs_of(domain, states_max=states_max, around_max=around_max)
    return drawing(domain, graphs, "example", course)


def steady(model: Model) -> Iterator[State]:
    """All states that strip leaves alone, what is remembered in them told apart."""
    variables = model.problem.variables
    each = [[*values, *(f"{value}?" for value in values[1:])] for values in variables.values()]
    for statuses in product(*each):
        state = dict(zip(variables, statuses, strict=True))
        if model.strip(state) == state:
            yield state


def known(model: Model, names: Iterable[str], state: State) -> State:
    return {name: state[name] for name in names if model.is_known(name, state[name])}


def open_here(model: Model, graph: GraphView, edge: EdgeView, state: State) -> bool:
    """Whether an edge may be taken in a state, by what is written at it and nothing else."""
    return (
        graph.states[edge.source] == known(model, graph.variables, state)
        and all(state[name] in standing for name, standing in edge.memory.items())
        and all(state[name] in values for name, values in edge.requires.items())
        and not model.excluded(state, (Requirement(*one) for one in edge.excludes.items()))
        and all(
            model.matches(name, state[name], tuple(sources), target.removesuffix("?"))
            for name, (sources, target) in edge.beside.items()
        )
    )


def around(model: Model, graph: GraphView, state: State) -> dict[Taken, State]:
    """What may be taken that looks at the graph's variables or changes them, and what follows."""
    return {
        (part.path, expect): dict(there)
        for part, expect, (there, _) in model.after((freeze(state), frozenset()))
        if set(subjects(part)) & set(graph.variables)
    }


def rests_on_a_look(model: Model, graph: GraphView, state: State) -> bool:
    """Whether what is known has a look with what the graph says that it asks of others."""
    for name, value in known(model, graph.variables, state).items():
        looks = [rest for rest in graph.rests if rest.variable == name]
        yielding = [rest for rest in looks if value in rest.outcomes] or looks
        asked = ([Requirement(*one) for one in rest.requires.items()] for rest in yielding)
        if looks and not any(model.required(state, one) for one in asked):
            return False
    return True


def hold_to_model(question: Question, graph: GraphView) -> None:
    """States and edges are what the plain model finds when it looks at everything."""
    model = question.model
    states = list(steady(model))
    knowable = {freeze(known(model, graph.variables, state)) for state in states}
    assert sorted(map(freeze, graph.states)) == sorted(knowable)
    assert all(rests_on_a_look(model, graph, state) for state in states)
    come_about = set()
    for state in states:
        taken = around(model, graph, state)
        edges = [one for one in graph.edges if open_here(model, graph, one, state)]
        assert {(one.part, one.expect) for one in edges} == taken.keys()
        led = set()
        for number, edge in enumerate(graph.edges):
            there = taken.get((edge.part, edge.expect), {})
            if edge in edges and graph.states[edge.target] == known(model, graph.variables, there):
                assert all(there[name] == f"{value}?" for name, value in edge.leaves.items())
                led.add((edge.part, edge.expect))
                come_about.add(number)
        assert led == taken.keys()
    assert come_about == set(range(len(graph.edges)))


@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(small, st.sampled_from(STATES))
def test_states_are_what_strip_leaves_alone_and_edges_what_may_be_taken(
    question: Question, states_max: int
) -> None:
    for graph in drawn(question, states_max).graphs:
        assert graph.exact
        hold_to_model(question, graph)


@given(questions(), st.sampled_from(STATES))
def test_what_is_marked_is_the_planners_chain(question: Question, states_max: int) -> None:
    told, model, answer = drawn(question, states_max), question.model, ask(question)
    assert told.course is not None
    assert told.course.goal == question.desired
    states = [question.start]
    if isinstance(answer, Chain):
        states = follow(question, answer)
        links = [TakenView(part_of(one).path, *expects(one)) for one in answer.links]
        assert (told.course.chain, told.course.cost) == (links, answer.cost)
        assert told.course.doubts == answer.doubts
    else:
        assert (told.course.chain, told.course.reason) == (None, answer.reason.text)
    assert told.course.states == [
        StateView(known(model, state, state), memories(model, state)) for state in states
    ]
    for graph in told.graphs:
        assert [graph.states[place] for place in graph.path] == [
            known(model, graph.variables, state) for state in states
        ]
        goal = {name: one for name, one in question.desired.items() if name in graph.variables}
        assert [graph.states[place] for place in graph.goal] == [
            state for state in graph.states if goal and goal.items() <= state.items()
        ]


@given(questions(), st.sampled_from(STATES))
def test_the_chain_is_a_path_of_edges_that_costs_what_the_planner_says(
    question: Question, states_max: int
) -> None:
    told = drawn(question, states_max)
    assert told.course is not None
    costs: dict[int, int] = {}
    for graph in told.graphs:
        for edge in graph.edges:
            for number in edge.links:
                assert told.course.chain is not None
                link = told.course.chain[number - 1]
                assert (edge.part, edge.expect) == (link.part, link.expect)
                assert graph.path[number - 1 : number + 1] == [edge.source, edge.target]
                costs[number] = edge.cost
    assert sorted(costs) == list(range(1, len(told.course.chain or ()) + 1))
    assert sum(costs.values()) == (told.course.cost or 0)


@given(questions())
def test_where_all_else_is_taken_to_be_as_it_must_nothing_is_missing(question: Question) -> None:
    exact, loose = drawn(question, 0), drawn(question, 0, around_max=0)
    ours = {next(iter(graph.variables)): graph for graph in loose.graphs}
    assert not any(graph.exact for graph in loose.graphs)
    for graph in exact.graphs:
        assert all(state in ours[next(iter(graph.variables))].states for state in graph.states)
        assert taken_from(graph) <= taken_from(ours[next(iter(graph.variables))])


def taken_from(graph: GraphView) -> set[tuple[object, ...]]:
    """From where what is taken, and where it leads, unless that is forgotten at once."""
    ends = ((edge, graph.states[edge.target]) for edge in graph.edges)
    return {
        (freeze(graph.states[one.source]), one.part, one.expect, freeze(there))
        for one, there in ends
        if there
    }


def expects(link: Link) -> tuple[str | None, bool]:
    return (link.expect, link.hoped) if isinstance(link, Find) else (None, False)


def memories(model: Model, state: State) -> State:
    return {name: state[name].removesuffix("?") for name in sorted(model.remembered(state))}
