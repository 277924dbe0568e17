"""A line that holds a problem is answered, whatever its bytes are."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.planner.explain.problem_json import COST_MAX, MOVES_MAX, VALUES_MAX
from haptera.planner.explain.problem_line import (
    PROBLEM_BYTES_MAX,
    Outcome,
    answer_line,
    explained_line,
)
from tests.docs.problem_schema import valid
from tests.planner.test_worked_examples import PROBLEM

WELL = PROBLEM | {
    "observed": {"power": "off"},
    "remembered": {"agent": "down"},
    "desired": {"agent": "up"},
}


def line(**changed: Any) -> bytes:
    return json.dumps(WELL | changed).encode()


def error(text: bytes) -> tuple[str, str]:
    outcome, found = answer_line(text)
    assert (outcome, list(found)) == (Outcome.MALFORMED, ["error"])
    return found["error"]["place"], found["error"]["text"]


def test_a_problem_is_answered_with_its_chain() -> None:
    outcome, found = answer_line(line())
    assert (outcome, found["verdict"], found["cost"]) == (Outcome.CHAIN, "chain", 4)


def test_without_a_chain_the_reason_is_told() -> None:
    outcome, found = answer_line(line(steps=[], observed={"power": "on", "agent": "down"}))
    assert (outcome, found["verdict"], found["chain"]) == (Outcome.NONE, "none", None)


def lights(count: int) -> bytes:
    """Lights switched two at a time, one of them wanted on: no chain, and that is hard to see."""
    names = [f"v{number:02}" for number in range(count)]
    other = {"on": "off", "off": "on"}
    steps = [
        {
            "name": f"{one}_{this}_{two}_{that}",
            "changes": {one: [this, other[this]], two: [that, other[that]]},
        }
        for one, two in pairwise(names)
        for this in other
        for that in other
    ]
    off = dict.fromkeys(names, "off")
    variables = {name: ["unknown", "off", "on"] for name in names}
    problem = {"variables": variables, "steps": steps, "observed": off}
    return json.dumps(problem | {"desired": off | {names[0]: "on"}}).encode()


def test_where_too_much_hangs_together_it_gives_up_and_says_so() -> None:
    outcome, found = answer_line(lights(18))
    assert (outcome, found["verdict"], found["chain"]) == (Outcome.BUDGET, "budget", None)
    assert (found["reason"]["kind"], found["optimal"]) == ("budget", False)
    assert valid(found, "Answer")


def test_where_the_states_are_few_it_is_proven_that_there_is_no_chain() -> None:
    outcome, found = answer_line(lights(6))
    assert (outcome, found["reason"]["kind"]) == (Outcome.NONE, "blocked")


NUMBER = "9" * 5_000
UNREADABLE = [
    (b"", "column 1", "is not JSON: Expecting value"),
    (b'{"looks": \n', "column 10", "is not JSON: Expecting value"),
    (b'{"looks":\n  x}\n', "line 2, column 3", "is not JSON: Expecting value"),
    (b'{"variables": {"a": ["\xff"]}}', "byte 23", "is not UTF-8"),
    (b'{"looks": [NaN]}', "problem", "is not JSON: NaN is no number"),
    (b'{"looks": [-Infinity]}', "problem", "is not JSON: -Infinity is no number"),
    (b"[" * 100_000, "problem", "is nested too deeply"),
    (b'{"a":' * 100_000, "problem", "is nested too deeply"),
    (NUMBER.encode(), "problem", "holds a number that is too long"),
    (b'{"looks": [], "looks": []}', "problem", "the key 'looks' is given twice in one object"),
    (b"{}{}", "column 3", "is not JSON: Extra data"),
    (b"[]", "problem", "Expected `object`, got `array`"),
    (b"null", "problem", "Expected `object`, got `null`"),
    (b" " * PROBLEM_BYTES_MAX + b"1", "problem", "is longer than 1048576 bytes"),
    (b'{"observed": {"a": "x", "b": null}}', "problem.observed['b']", "Expected `str`, got `null`"),
    (
        b'{"steps": [{"name": "s", "changes": {"a": ["x", "y"], "b": [["x", 3], "y"]}}]}',
        "problem.steps[0].changes['b'][0][1]",
        "Expected `str`, got `int`",
    ),
    (b'{"looks": [{"name": 1}]}', "problem.looks[0].name", "Expected `str`, got `int`"),
    (
        b'{"desired": {"a": "b"}}',
        "desired a",
        "'a' is neither a variable nor an attribute",
    ),
]


@pytest.mark.parametrize(("text", "place", "told"), UNREADABLE, ids=[x[2] for x in UNREADABLE])
def test_what_cannot_be_read_is_told_with_its_place(text: bytes, place: str, told: str) -> None:
    assert error(text) == (place, told)


def test_what_is_too_large_is_refused_before_it_is_compiled() -> None:
    values = ["unknown", *map(str, range(VALUES_MAX))]
    assert error(line(variables={"a": values}))[0] == "problem.variables"

    step = PROBLEM["steps"][0]
    steps = [step | {"name": f"s{number}"} for number in range(MOVES_MAX + 1)]
    assert error(line(steps=steps)) == ("problem", "more than 4096 parts and outcomes in all")

    assert error(line(steps=[step | {"cost": COST_MAX + 1}]))[0] == "problem.switch_on cost"
    assert answer_line(line(steps=[*PROBLEM["steps"][1:], step | {"cost": COST_MAX}]))[1][
        "cost"
    ] == (COST_MAX + 2)


def test_a_place_or_text_that_is_endless_is_cut() -> None:
    place, text = error(line(desired={"x" * 10_000: "1"}))
    assert (len(place), len(text)) == (500, 500)


def test_half_of_a_character_is_answered_in_ascii() -> None:
    outcome, found = answer_line(
        rb'{"variables": {"a": ["u", "\ud800"]}, "desired": {"\ud800": "x"}}'
    )
    assert outcome is Outcome.MALFORMED
    assert json.loads(json.dumps(found)) == found


# Pieces of well-formed problems in the wrong places, beside anything that JSON can hold.
words = st.sampled_from(
    ["power", "agent", "platform", "rack", "unknown", "off", "on", "up?", "*", "", "ipmi"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=4)
values = st.recursive(
    scalars, lambda one: st.lists(one, max_size=3) | st.dictionaries(words, one, max_size=3)
)
keys = st.sampled_from(sorted(WELL))
parts = st.fixed_dictionaries(
    {"name": words},
    optional={
        "at": words,
        "outcomes": values | st.lists(words, max_size=3),
        "changes": values | st.dictionaries(words, st.lists(words, min_size=2, max_size=2)),
        "requires": values | st.dictionaries(words, words, max_size=2),
        "excludes": values | st.dictionaries(words, words, max_size=2),
        "cost": values | st.integers(),
    },
)
mutilated = st.dictionaries(keys, values | st.lists(parts, max_size=3), max_size=3).map(
    lambda changed: line(**changed)
)


@given(
    st.binary(max_size=200)
    | mutilated
    | st.tuples(mutilated, st.integers(0, 900)).map(lambda cut: cut[0][: cut[1]])
)
def test_any_bytes_are_answered_in_the_published_form(text: bytes) -> None:
    outcome, found = answer_line(text)
    assert valid(found, "Answer")
    assert (outcome is Outcome.MALFORMED) == ("error" in found)
    assert json.loads(json.dumps(found)) == found


def test_what_would_take_too_long_to_say_of_an_answer_is_cut_short() -> None:
    _, whole = explained_line(line())
    _, cut = explained_line(line(), work=1)
    assert (whole["explained"]["cut_short"], cut["explained"]["cut_short"]) == (False, True)
    assert cut["chain"] == whole["chain"]


def test_the_order_of_variables_does_not_change_the_reason() -> None:
    looks = [
        {"name": "look_a", "at": "a", "outcomes": ["1", "2"], "excludes": {"b": "1"}},
        {"name": "look_b", "at": "b", "outcomes": ["1"]},
    ]
    now = {"a": "1", "b": "1"}
    texts = [
        answer_line(
            line(
                variables={name: ["unknown", "1", "2"] for name in names},
                looks=looks,
                steps=[],
                observed=now,
                remembered={},
                desired={"a": "2"},
            )
        )[1]["reason"]["text"]
        for names in ("ab", "ba")
    ]
    assert (
        texts
        == [
            "no way to a=2: 2 obstacles: look_a can only find what is so, but a is 1, "
            "and no step leads there; look_a is excluded by b=1"
        ]
        * 2
    )


def test_the_order_of_parts_and_names_does_not_change_the_answer() -> None:
    other = {
        name: list(reversed(found)) if isinstance(found, list) else found
        for name, found in WELL.items()
    }
    assert answer_line(json.dumps(other).encode()) == answer_line(line())


def test_what_the_schema_refuses_is_malformed() -> None:
    for changed in (
        {"looks": [{"name": "look", "at": "power", "outcomes": []}]},
        {"steps": [{"name": "step", "changes": {}}]},
        {"steps": [{"name": "step", "changes": {"power": ["off", "on"]}, "cost": 0}]},
        {"steps": [{"name": "step", "changes": {"power": ["off"]}}]},
        {"variables": {"a": []}},
        {"attributes": {"rack": 1}},
        {"other": {}},
    ):
        assert not valid(WELL | changed, "ProblemForm")
        assert error(line(**changed))
    assert valid(WELL, "ProblemForm")
