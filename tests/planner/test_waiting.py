"""A chain that lacks only what others change waits for that, however many there are of these."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from haptera.model.chain import NoChain, Reason, ReasonKind
from haptera.model.parts import Change, Look, Requirement, Step
from haptera.planner.domain.domain import Domain, compile_class
from haptera.planner.domain.problem import Problem, check
from haptera.planner.planner import plan
from haptera.planner.reasons.waiting import SETS_TRIED_MAX
from haptera.planner.search.search_budget import WORK_MAX, affordable
from tests.planner.test_search_budget import STEPS_MAX
from tests.planner.test_search_budget import steps as steps_of

VALUES = ("unknown", "1", "2")
UP = (Change("a", ("1",), "2"),)


def requires(values: dict[str, str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(name, (value,)) for name, value in values.items())


def why(
    *parts: Look | Step,
    borrowed: dict[str, tuple[str, ...]],
    known: Mapping[str, str] = MappingProxyType({}),
) -> Reason:
    looks = tuple(part for part in parts if isinstance(part, Look))
    steps = tuple(part for part in parts if isinstance(part, Step))
    problem = Problem({"a": VALUES, **borrowed}, {}, looks, steps)
    check(problem)
    domain = compile_class(problem)
    answer = plan(domain, domain.start({"a": "1", **known}, {}), {"a": "2"})
    assert isinstance(answer, NoChain)
    return answer.reason


def test_more_values_than_can_be_tried_are_those_that_the_cheapest_chain_asks_for() -> None:
    names = [f"b{number:03}" for number in range(400)]
    needed = dict.fromkeys(names, "1")
    up = Step("m", "up", "k", UP, requires(needed))
    reason = why(up, borrowed=dict.fromkeys(names, VALUES))
    assert reason.kind is ReasonKind.WAITS
    assert reason.waits_for == tuple(needed.items())


def test_what_parts_ask_for_in_different_words_is_waited_for_in_one() -> None:
    """Both steps take b=2, and no other value is taken by both."""
    values = ("unknown", *map(str, range(SETS_TRIED_MAX)))
    names = [f"c{number}" for number in range(3)]
    first = (Requirement("b", ("1", "2")), *requires(dict.fromkeys(names, "999")))
    halfway = Step("m", "halfway", "k", (Change("x", ("*",), "on"),), first)
    up = Step("m", "up", "k", UP, (Requirement("b", ("2", "3")), *requires({"x": "on"})))
    borrowed = dict.fromkeys(["b", *names], values) | {"x": ("unknown", "on")}
    reason = why(halfway, up, borrowed=borrowed)
    assert reason.text == "waits for b=2 and c0=999 and c1=999 and c2=999"


def test_what_keeps_things_known_is_waited_for_too() -> None:
    """Of two looks that it may rest on, one is enough."""
    names = [f"c{number}" for number in range(3)]
    values = ("unknown", *map(str, range(SETS_TRIED_MAX)))
    looks = [
        Look("m", f"look_{value}", "k", "a", ("1", "2"), requires({"b": value})) for value in "12"
    ]
    up = Step("m", "up", "k", (Change("a", ("*",), "2"),), requires(dict.fromkeys(names, "999")))
    reason = why(*looks, up, borrowed=dict.fromkeys(["b", *names], values))
    assert reason.text == "waits for b=1 and c0=999 and c1=999 and c2=999"


def test_what_could_be_no_other_is_not_waited_for() -> None:
    """Of so many there are more sets than anybody could go through."""
    names = [f"b{number}" for number in range(60)]
    borrowed = dict.fromkeys(names, ("unknown", "1"))
    up = Step("m", "up", "k", UP, requires(dict.fromkeys(names, "1") | {"c": "1"}))
    back = Step("m", "back", "k", (Change("c", ("2",), "1"),))
    known = dict.fromkeys(names, "1") | {"c": "3"}
    reason = why(up, back, borrowed=borrowed | {"c": ("unknown", "1", "2", "3")}, known=known)
    assert (reason.kind, reason.variable) == (ReasonKind.BLOCKED, "c")


def many_waiting(count: int) -> tuple[Domain, int, dict[str, str]]:
    """So many goals that all wait for the same three values, of more than can be tried."""
    names = [f"a{number}" for number in range(count)]
    needs = requires(dict.fromkeys("bcd", "0"))
    parts = tuple(Step("m", f"up_{one}", "k", (Change(one, ("1",), "2"),), needs) for one in names)
    borrowed = dict.fromkeys("bcd", ("unknown", *map(str, range(12))))
    domain = compile_class(Problem(dict.fromkeys(names, VALUES) | borrowed, {}, (), parts))
    return domain, domain.start(dict.fromkeys(names, "1"), {}), dict.fromkeys(names, "2")


def test_what_is_tried_takes_hardly_more_than_its_allowance() -> None:
    domain, start, goal = many_waiting(10)
    for work in (WORK_MAX // 10, WORK_MAX):
        asked = partial(plan, domain, start, goal, affordable(work))
        assert steps_of(asked) < STEPS_MAX


def test_with_too_little_left_for_what_is_waited_for_that_is_said() -> None:
    """Over all that is tried in vain, what was found walled in is forgotten."""
    domain, start, goal = many_waiting(20)
    for work in (10, *[WORK_MAX] * 6):
        cut = plan(domain, start, goal, affordable(work))
        assert isinstance(cut, NoChain)
    assert cut.reason.text.endswith("the obstacles were not found within the budget")
