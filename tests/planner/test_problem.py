"""What is malformed is refused with its place; what a kind declares becomes a problem."""

from typing import Any

import pytest

from haptera.kinds import node, service
from haptera.kinds.extensions import node_kind
from haptera.model.errors import HapteraError
from haptera.model.parts import Change, Look, Step
from haptera.planner.domain.problem import Problem, check, problem_of
from haptera.planner.explain.problem_json import problem_from_json

WELL: dict[str, Any] = {
    "variables": {"a": ["unknown", "1", "2"], "b": ["unknown", "1", "2"]},
    "attributes": {"rack": None},
    "looks": [{"name": "look", "at": "a", "outcomes": ["1"]}],
    "steps": [{"name": "step", "changes": {"a": ["1", "2"]}}],
}


def look(**changed: Any) -> dict[str, Any]:
    return {"looks": [{"name": "look", "at": "a", "outcomes": ["1"]} | changed]}


def step(**changed: Any) -> dict[str, Any]:
    return {"steps": [{"name": "step", "changes": {"a": ["1", "2"]}} | changed]}


CIRCLE = [
    {"name": "one", "at": "a", "outcomes": ["1"], "requires": {"b": "1", "rack": "r1"}},
    {"name": "two", "at": "b", "outcomes": ["1"], "requires": {"a": "1"}},
]
MALFORMED = [
    (step(requires={"z": "1"}), "problem.step requires z: 'z' is neither"),
    (look(at="z"), "problem.look at: 'z' is neither"),
    ({"desired": {"z": "1"}}, "desired z: 'z' is neither"),
    ({"attributes": {"a": "1"}}, "a: a is both a variable and an attribute"),
    (
        step(requires={"b": "7"}),
        "problem.step requires b: '7' is no value of b (use unknown, 1, 2)",
    ),
    (step(changes={"a": ["7", "2"]}), "problem.step changes a: '7' is no value"),
    (step(changes={"a": ["1", "7?"]}), "problem.step changes a: '7' is no value"),
    (look(outcomes=["7"]), "problem.look outcomes: '7' is no value"),
    ({"observed": {"a": "7"}}, "observed a: '7' is no value"),
    ({"desired": {"a": "unknown"}}, "desired a: cannot be unknown"),
    ({"remembered": {"a": "unknown"}}, "remembered a: cannot be unknown"),
    (step(requires={"b": ["1", "unknown"]}), "problem.step requires b: cannot name b's unknown"),
    (step(changes={"a": ["2", "2"]}), "problem.step changes a: can only start from 2"),
    (step(changes={"a": [[], "2"]}), "problem.step changes a: starts from no value"),
    (step(changes={"a": ["1", "unknown"]}), "problem.step changes a: a step cannot make"),
    (step(changes={"a": [["*", "1"], "2"]}), "problem.step changes a: '*' stands alone"),
    (step(changes={}), "problem.step: changes nothing"),
    (step(requires={"b": []}), "problem.step requires b: lists no values"),
    (step(excludes={"rack": []}), "problem.step excludes rack: lists no values"),
    (look(outcomes=[]), "problem.look outcomes: lists no values"),
    (look(outcomes=["unknown"]), "problem.look outcomes: a look cannot find a unknown"),
    (look(excludes={"b": "unknown"}), "problem.look excludes b: cannot name b's unknown"),
    (look(at="rack"), "problem.look at: rack is an attribute, not a variable"),
    (step(changes={"rack": ["1", "2"]}), "problem.step changes rack: rack is an attribute"),
    ({"observed": {"rack": "r1"}}, "observed rack: rack is an attribute"),
    ({"variables": {"a": ["unknown", "1?"]}}, "a: no value may be"),
    ({"variables": {"a": ["unknown", "*"]}}, "a: no value may be"),
    ({"variables": {"a": []}}, "a: has no values"),
    ({"variables": {"a": ["unknown", "1", "1"]}}, "a: lists a value twice"),
    (step(requires={"rack": "*"}), "problem.step requires rack: no value may be"),
    (step(excludes={"a": "1"}), "problem.step excludes a: is also what this part"),
    (look(requires={"a": "1"}), "problem.look requires a: is also what this part"),
    (look(name="step"), "problem.step: two parts have this name"),
    (step(cost=0), "problem.step cost: 0 is not a positive whole number"),
    (step(cost=1.5), "problem.steps[0].cost: Expected `int`, got `float`"),
    (step(cost=True), "problem.steps[0].cost: Expected `int`, got `bool`"),
    ({"looks": CIRCLE}, "looks depend on each other in a cycle: a needs b needs a"),
    (step(requires={"rack": "r9", "z": "1"}), "problem.step requires z: 'z' is neither"),
    (step(require={"b": "1"}), "problem.steps[0]: Object contains unknown field `require`"),
]


@pytest.mark.parametrize(("changed", "told"), MALFORMED, ids=[told for _, told in MALFORMED])
def test_what_is_malformed_is_refused_with_its_place(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(HapteraError) as error:
        problem_from_json(WELL | changed)
    assert told in str(error.value)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        step(excludes={"b": ["unknown", "1"]}),
        step(changes={"a": [["unknown", "1", "2"], "2"]}),
        step(changes={"a": ["1", "1?"]}),
        step(changes={"a": ["*", "1?"], "b": ["unknown", "1"]}),
        look(requires={"b": "1", "rack": ["r1", "r2"]}),
        {"observed": {"a": "unknown"}},
    ],
)
def test_what_is_well_formed_is_taken(changed: dict[str, Any]) -> None:
    problem_from_json(WELL | changed)


def test_a_kind_becomes_a_problem_with_what_it_borrows_and_its_nodes_attributes() -> None:
    start = Step("service", "start", "service", (Change("run", ("stopped",), "running"),))
    watch = Look("service", "look", "service", "run", ("stopped", "running", "failed", "unready"))
    problem = problem_of(service.kind, (start, watch), {"node.rack": "r1"})
    check(problem)
    assert problem == Problem(
        {
            "run": ("unknown", "stopped", "running", "failed", "unready"),
            "applied": ("unknown", "stale", "current"),
            "node.agent": ("unknown", "up"),
        },
        {f"node.{one.name}": None for one in node_kind().attributes} | {"node.rack": "r1"},
        (watch,),
        (start,),
    )
    assert problem.borrowed == ("applied", "node.agent")


def test_a_node_names_its_own_attributes_barely() -> None:
    problem = problem_of(node.kind, (), {"platform": "labnode"})
    assert problem.attributes["platform"] == "labnode"
    assert "node.platform" not in problem.attributes
