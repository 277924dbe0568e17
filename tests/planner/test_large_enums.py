"""However many values a variable has, no more time is taken for each of them."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from haptera.lint.lint import lint
from haptera.model.chain import Chain
from haptera.model.parts import ANY, Change, Look, Requirement, Step
from haptera.planner.domain.domain import compile_class
from haptera.planner.domain.problem import Problem, check
from haptera.planner.planner import plan

# What is not done for each value is done once, and so counts for less where there are more.
SMALL, LARGE = 50, 500


def names(count: int) -> tuple[str, ...]:
    return tuple(f"v{number}" for number in range(count))


def look(count: int, *, requires: tuple[Requirement, ...] = ()) -> Look:
    return Look("m", "look", "k", "a", names(count), requires)


def step(name: str, sources: tuple[str, ...], target: str) -> Step:
    return Step("m", name, "k", (Change("a", sources, target),))


def both_ways(count: int) -> Problem:
    """A row of values, from each to the next and back."""
    pairs = list(zip(names(count), names(count)[1:], strict=False))
    up = (step(f"up_to_{second}", (first,), second) for first, second in pairs)
    down = (step(f"down_to_{first}", (second,), first) for first, second in pairs)
    return Problem({"a": ("unknown", *names(count))}, {}, (look(count),), (*up, *down))


def one_way(count: int) -> Problem:
    """A row of values from which there is no way back."""
    whole = both_ways(count)
    up = tuple(one for one in whole.steps if one.name.startswith("up"))
    return Problem(whole.variables, {}, whole.looks, up)


def star(count: int) -> Problem:
    """Each value from any other."""
    steps = tuple(step(f"to_{name}", (ANY,), name) for name in names(count))
    return Problem({"a": ("unknown", *names(count))}, {}, (look(count),), steps)


def powered(count: int) -> Problem:
    """A row of values, known and changed while another variable is on, which half of them bar."""
    on = (Requirement("p", ("on",)),)
    half = (Requirement("a", names(count)[: count // 2]),)
    switch = Step("m", "switch_on", "k", (Change("p", ("off",), "on"),))
    off = Step("m", "switch_off", "k", (Change("p", ("on",), "off"),), (), half)
    row = both_ways(count)
    steps = tuple(Step("m", one.name, "k", one.changes, on) for one in row.steps)
    looks = (look(count, requires=on), Look("m", "look_p", "k", "p", ("off", "on")))
    variables = {**row.variables, "p": ("unknown", "off", "on")}
    return Problem(variables, {}, looks, (*steps, switch, off))


SHAPES: dict[Callable[[int], Problem], int] = {
    both_ways: SMALL - 1,
    one_way: SMALL - 1,
    star: 1,
    powered: SMALL + 1,
}


def planned(shape: Callable[[int], Problem], count: int) -> Chain:
    problem = shape(count)
    check(problem)
    domain = compile_class(problem)
    start = domain.start({"a": "v0", **({"p": "off"} if "p" in domain.fields else {})}, {})
    found = plan(domain, start, {"a": names(count)[-1]})
    assert isinstance(found, Chain)
    return found


def lines(asked: Callable[[], object]) -> int:
    """How many lines of Python are run, again and again in loops."""
    count = 0

    def ran(_frame: object, event: str, _what: object) -> Any:
        nonlocal count
        count += event == "line"
        return ran

    before = sys.gettrace()
    sys.settrace(ran)
    try:
        asked()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("shape", SHAPES)
def test_the_cheapest_chain_is_found(shape: Callable[[int], Problem]) -> None:
    chain = planned(shape, SMALL)
    assert (chain.cost, chain.optimal) == (SHAPES[shape], True)


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_times_the_values_take_ten_times_as_long_or_hardly_more(
    shape: Callable[[int], Problem],
) -> None:
    small, large = (lines(partial(planned, shape, count)) for count in (SMALL, LARGE))
    assert large <= 2 * small * LARGE // SMALL


def test_linting_ten_times_the_values_takes_ten_times_as_long_or_hardly_more() -> None:
    few, many = SMALL // 5, LARGE // 5
    small, large = (lines(partial(lint, "k", both_ways(count))) for count in (few, many))
    assert large <= 2 * small * many // few
