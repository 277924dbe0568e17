"""What would never mean anything is refused where it is written, with its place."""

import pytest

from haptera.kinds import KINDS
from haptera.kinds.meaning import check_selector
from haptera.kinds.rules.rule import parse_rule
from haptera.model.errors import HapteraError
from haptera.selectors.selector import parse_selector
from tests.kinds.listed import ATTRIBUTES


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "node:rack1* and power=off",
        "service.run!=running",
        "run in (failed, unknown)",
        "desired.run=stopped",
        'desired.power=""',
        "service:web and node.rack=r1",
        "age(condition)>1h and condition=stuck",
        "age(node.agent)>1m and service:*",
        "@gpu or @rack:r1",
        "port=80 or version=1.2",
        "node:* or (service:* and not run=failed)",
        "not (node:* and power=off)",
    ],
)
def test_what_can_be_so_is_taken(text: str) -> None:
    selector = parse_selector(text)
    assert check_selector(selector) is selector


@pytest.mark.parametrize(
    ("text", "character", "what", "do"),
    [
        ("n1 or rack:x", 7, "there is no kind 'rack'", "there are"),
        ("powr=off", 1, "nothing has a 'powr'", "did you mean power?"),
        ("service.power=off", 1, "no service has a 'power'", "did you mean port?"),
        ("node.rank=1", 1, "no node has a 'rank'", "did you mean rack?"),
        ("rack1.power=on", 1, "there is no kind 'rack1'", "there are"),
        ("desired.rack=r1", 1, "nothing has a desired 'rack'", "did you mean rack?"),
        ("last.port=80", 1, "nothing has a last 'port'", "did you mean port?"),
        ("n1 and power=of", 8, "power cannot be 'of'", "did you mean off? there are hung, off"),
        ("desired.power=unknown", 1, "desired.power cannot be 'unknown'", 'there are "", hung'),
        ("condition in (stuck, done)", 1, "condition cannot be 'done'", "there are acting"),
        ("age(rack)>1m", 5, "rack has no age", "there are agent"),
        ("age(desired.power)>1m", 5, "desired.power has no age", "did you mean power?"),
        ("@colour:red", 1, "@colour:red: no attribute of nodes is called 'colour'", ATTRIBUTES),
        ("n1 or service:web@@rak:r1", 7, "@rak:r1: no attribute of nodes is called 'rak'", "rack"),
        ("service:web and rack=r1", 17, "this can never be true of a service", "node.NAME"),
        ("node:* and service:*", 12, "this can never be true of a node", "join with or"),
        ("power=on and run=failed", 14, "this can never be true of a node", "node.NAME"),
        ("n1 or not (node:* and run=failed)", 23, "this can never be true of a node", "node.NAME"),
    ],
)
def test_what_can_never_be_so_is_refused(text: str, character: int, what: str, do: str) -> None:
    with pytest.raises(HapteraError) as raised:
        check_selector(parse_selector(text))
    assert raised.value.what == what
    assert raised.value.where == f"selector {text!r}, character {character}"
    assert raised.value.do is not None
    assert do in raised.value.do


def test_a_cluster_may_have_kinds_of_its_own() -> None:
    nodes_only = {"node": KINDS["node"]}
    check_selector(parse_selector("power=on"), nodes_only)
    with pytest.raises(HapteraError, match="nothing has a 'run'"):
        check_selector(parse_selector("run=failed"), nodes_only)


@pytest.mark.parametrize("text", ["n1", "rack1* and not service:web", "@gpu", "node.rack!=r1", "*"])
def test_rules_go_by_names_groups_and_attributes(text: str) -> None:
    assert parse_rule(text).text == text


@pytest.mark.parametrize(
    ("text", "character", "datum"),
    [
        ("n1 and power=off", 8, "power"),
        ("desired.power=on", 1, "desired.power"),
        ("condition=stuck", 1, "condition"),
        ("n1 or not age(agent)>1m", 15, "agent"),
        ("service.port=80", 1, "service.port"),
    ],
)
def test_rules_do_not_go_by_state(text: str, character: int, datum: str) -> None:
    with pytest.raises(HapteraError) as raised:
        parse_rule(text)
    what = f"a rule cannot select by {datum}: it must hold in every state"
    assert raised.value.what == what
    assert raised.value.where == f"selector {text!r}, character {character}"


def test_a_rule_by_what_no_node_has_is_told_what_there_is() -> None:
    with pytest.raises(HapteraError) as raised:
        parse_rule("n1 or node.rak=r1")
    assert raised.value.what == "nodes have no attribute 'rak'"
    assert raised.value.do == f"did you mean rack? there are {ATTRIBUTES}"
