"""What a class can know is what the plain model says, state by state."""

from itertools import product

import pytest
from hypothesis import given

from haptera.model.parts import Look, Requirement
from haptera.planner.domain.domain import Domain, compile_class
from haptera.planner.domain.problem import Problem
from tests.planner.planner_model import State
from tests.planner.strategies import Question, questions

# Shrinking takes up to five minutes; to end it sooner would hide the example.
pytestmark = pytest.mark.timeout(360)

ABC = dict.fromkeys("abc", ("unknown", "1", "2", "3"))


def look(at: str, *outcomes: str, name: str = "", **requires: str) -> Look:
    needs = tuple(Requirement(one, (value,)) for one, value in requires.items())
    return Look("m", name or f"look_{at}", "k", at, outcomes, needs)


def status(domain: Domain, state: int) -> State:
    """A word as the plain model writes states."""
    unknown = {name: values[0] for name, values in domain.problem.variables.items()}
    remembered = {name: f"{value}?" for name, value in domain.remembered(state).items()}
    return unknown | remembered | domain.known(state)


@given(questions())
def test_a_start_is_stripped_as_in_the_plain_model(question: Question) -> None:
    domain, model = compile_class(question.problem), question.model
    state = domain.start(question.observed, question.remembered)
    assert status(domain, state) == model.start(question.observed, question.remembered)
    assert domain.strip(state) == state


@given(questions())
def test_whatever_is_known_of_all_variables_is_stripped_as_in_the_plain_model(
    question: Question,
) -> None:
    domain, model = compile_class(question.problem), question.model
    variables = question.problem.variables
    for values in product(*(values[1:] for values in variables.values())):
        observed = dict(zip(variables, values, strict=True))
        assert status(domain, domain.start(observed, {})) == model.start(observed, {})


@given(questions())
def test_what_is_knowable_and_which_looks_are_open_is_as_in_the_plain_model(
    question: Question,
) -> None:
    domain, model = compile_class(question.problem), question.model
    word = domain.start(question.observed, question.remembered)
    state = status(domain, word)
    for name, values in question.problem.variables.items():
        for value in values[1:]:
            assert domain.knowable(word, name, value) == model.knowable(state, name, value)
    open_now = {
        look.path
        for look in model.looks
        if model.required(state, look.requires) and not model.excluded(state, look.excludes)
    }
    assert {look.path for look in domain.looks_open(word)} == open_now


def test_three_in_a_row_are_forgotten_though_the_last_never_names_the_first() -> None:
    looks = (look("c", "1", "2", b="2"), look("b", "1", "2", a="2"), look("a", "1", "2"))
    domain = compile_class(Problem(ABC, {}, looks))
    state = domain.start({"a": "1", "b": "2", "c": "1"}, {})
    assert (domain.known(state), domain.remembered(state)) == ({"a": "1"}, {"b": "2", "c": "1"})


def test_a_value_is_knowable_where_a_look_that_yields_it_is_open() -> None:
    looks = (
        look("v", "1", name="one", p="1"),
        look("v", "2", name="two", p="2"),
        look("p", "1", "2"),
    )
    domain = compile_class(Problem({"p": ABC["a"], "v": ABC["a"]}, {}, looks))
    state = domain.start({"p": "1"}, {})
    # 3 is yielded by none, so any look will do for it.
    assert [domain.knowable(state, "v", value) for value in "123"] == [True, False, True]


def test_without_a_look_in_its_class_a_variable_is_never_known() -> None:
    elsewhere = look("a", "1", "2", p="x")
    problem = Problem(ABC, {"p": "y"}, (elsewhere,))
    domain = compile_class(problem)
    state = domain.start({"a": "1", "b": "1"}, {})
    assert (domain.known(state), domain.remembered(state)) == ({"b": "1"}, {"a": "1"})
    assert not domain.knowable(state, "a", "1")
    assert domain.looks_open(state) == ()


def test_an_observed_value_wins_and_an_observed_unknown_says_nothing() -> None:
    domain = compile_class(Problem(ABC, {}))
    state = domain.start({"a": "1", "b": "unknown"}, {"a": "2", "b": "3"})
    assert (domain.known(state), domain.remembered(state)) == ({"a": "1"}, {"b": "3"})


def test_only_known_values_meet_a_goal() -> None:
    domain = compile_class(Problem(ABC, {}))
    state = domain.start({"a": "1"}, {"b": "1"})
    assert domain.meets(state, {})
    assert domain.meets(state, {"a": "1"})
    assert not domain.meets(state, {"a": "2"})
    assert not domain.meets(state, {"a": "1", "b": "1"})


def test_a_value_that_is_none_is_the_callers_fault() -> None:
    domain = compile_class(Problem(ABC, {}))
    with pytest.raises(ValueError, match="'4' is no value of a"):
        domain.start({"a": "4"}, {})
    with pytest.raises(KeyError):
        domain.start({"z": "1"}, {})
