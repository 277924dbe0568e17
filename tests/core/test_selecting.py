"""Which entities a selector means, beside a plain evaluator on random clusters and selectors."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.core.state.entity.verdict import Verdict
from haptera.core.state.limits import MS
from haptera.core.state.selecting import Declared, attributes_of, groups_of, means, meant, names_of
from haptera.core.state.table import EntityTable
from haptera.core.views.query import view
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.facts import Fact, Method
from haptera.planner.domain.pieces import at_once
from haptera.selectors.nodeset import expand
from haptera.selectors.selector import parse_selector
from tests.model.view_subject import ViewSubject

NOW = 10_000_000 * MS
MINUTE = 60_000 * MS


def fact(value, age_ms=0):
    return Fact(value, "lab", Method.READ, NOW - age_ms * MS, 0)


def cluster():
    """Two racks of two nodes, one of them off and one unknown, a service on each but the last."""
    table = EntityTable(KINDS)
    for number, name in enumerate(("r1n1", "r1n2", "r2n1", "r2n2")):
        groups = {"groups": "gpu, big"} if number in (0, 2) else {}
        rack = {"rack": name[:2]} if number < 3 else {}
        table.apply(Declare(node_id(name), {"platform": "lab", **rack, **groups}, "site"), 1)
        if number < 3:
            web = EntityId("service", "web", name)
            table.apply(Declare(web, {}, "site"), 2)
            table.apply(SetDesired(web, "run", "running", "site"), 3)
            table.apply(SetDesired(web, "port", 8080 + number, "site"), 3)
    on, off, lost = (table.make(node_id(name)) for name in ("r1n1", "r1n2", "r2n1"))
    on.belief.known |= {"power": fact("on", 500), "agent": fact("up", 500)}
    off.belief.known |= {"power": fact("off", 70_000)}
    lost.belief.remembered |= {"power": fact("on", 70_000), "agent": fact("up", 70_000)}
    off.stance.verdict, off.stance.since = Verdict(Condition.STUCK), NOW - 10 * MINUTE
    table.make(EntityId("service", "web", "r1n1")).belief.known["run"] = fact("running")
    table.make(EntityId("service", "web", "r1n2")).belief.remembered["run"] = fact("running")
    table.make(EntityId("module", "labnode", None)).belief.known["run"] = fact("failed")
    return table


NODES = ["node:r1n1", "node:r1n2", "node:r2n1", "node:r2n2"]
WEBS = [f"service:web@{name}" for name in ("r1n1", "r1n2", "r2n1")]
MODULE = "module:labnode"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("*", [MODULE, *NODES, *WEBS]),
        ("power=on", NODES[:1]),
        ("power=off", [NODES[1]]),
        # Remembered, and never read: both are unknown now.
        ("power=unknown", NODES[2:]),
        ("power!=on", NODES[1:]),
        ("power not in (on, unknown)", [NODES[1]]),
        ("last.power=on", [NODES[0], NODES[2]]),
        ("last.power=unknown", [NODES[3]]),
        # Only kinds that have it: `run` is not a variable of nodes.
        ("run!=running", [MODULE, *WEBS[1:]]),
        ("service.run!=running", WEBS[1:]),
        ("not run=running", [MODULE, *NODES, *WEBS[1:]]),
        # Of the node that a service is on, and of the node itself.
        ("node.agent=up", [NODES[0], WEBS[0]]),
        ("service:* and node.agent!=up", WEBS[1:]),
        ("node.rack=r1", [*NODES[:2], *WEBS[:2]]),
        ("rack=r1", NODES[:2]),
        ('rack=""', [NODES[3]]),
        ("desired.run=running", WEBS),
        ('desired.power=""', NODES),
        ("desired.power!=on", NODES),
        ("port=8081", [WEBS[1]]),
        ("desired.port in (8080, 8082)", [WEBS[0], WEBS[2]]),
        ("condition=stuck", [NODES[1]]),
        ("node.condition=stuck", [NODES[1], WEBS[1]]),
        ("age(power)>1m", NODES[1:]),
        ("age(power)<=1m", NODES[:1]),
        ("age(agent)>1m and last.agent=up", [NODES[2]]),
        ("age(node.power)>1m and service:*", WEBS[1:]),
        ("age(condition)>=10m", [NODES[1]]),
        ("@gpu", [NODES[0], NODES[2], WEBS[0], WEBS[2]]),
        ("node:@big!@rack:r2", [NODES[0]]),
        ("service:web@@rack:r1", WEBS[:2]),
        ("node:@rack:*", NODES[:3]),
        ("node:@*!@gpu", [NODES[1], NODES[3]]),
        ("@nobody or @rack:r9", []),
        ("r1* and power=off or module:*", [MODULE, NODES[1]]),
    ],
)
def test_a_selector_means_these_now(text, found):
    table = cluster()
    selector = parse_selector(text)
    assert sorted(str(row.id) for row in at_once(meant(table, [selector], NOW))) == sorted(found)
    assert sorted(str(row.id) for row in table if means(table, selector, row.id, NOW)) == sorted(
        found
    )


def test_all_of_several_selectors_are_meant_at_once():
    selectors = [parse_selector(text) for text in ("r1*", "node:*", "power=off")]
    assert [str(row.id) for row in at_once(meant(cluster(), selectors, NOW))] == ["node:r1n2"]
    assert not means(cluster(), selectors[0], node_id("r1n9"), NOW)


def test_groups_hold_the_nodes_that_there_are():
    table = cluster()
    groups = groups_of(table, names_of(attributes_of(table)))
    assert expand("@gpu", groups) == ("r1n1", "r2n1")
    assert expand("@*!@rack:*", groups) == ("r2n2",)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@gpu", [NODES[0], NODES[2], WEBS[0], WEBS[2]]),
        ("rack=r1 or node.rack=r2", [*NODES[:3], WEBS[2]]),
        ("node.rack!=r1", [*NODES[2:], WEBS[2]]),
        # Nothing that can change while a rule holds.
        ("power=on or condition=idle or age(power)>1m or desired.run=running", []),
    ],
)
def test_rules_go_by_what_is_declared(text, found):
    table = cluster()
    subjects = [Declared(row.id, attributes_of(table)) for row in table]
    selector = parse_selector(text)
    assert sorted(str(one.id) for one in subjects if selector.means(one)) == sorted(found)


# Random clusters and selectors. Each leaf comes as text and as what it means of two plain dicts.

VALUES = {"power": ["unknown", "off", "on", "hung"], "agent": ["unknown", "up"]}
AGES = [0, 1_000, 59_999, 60_000, 60_001, 3_600_000]
NAMES = [f"r{rack}n{number}" for rack in (1, 2) for number in (1, 2, 3)]


@st.composite
def states(draw):
    """For each node: (known, value, age) of its variables, rack, groups, what is desired of it."""
    variables = {
        name: st.none()
        | st.tuples(st.booleans(), st.sampled_from(values[1:]), st.sampled_from(AGES))
        for name, values in VALUES.items()
    }
    one = st.fixed_dictionaries(
        {
            **variables,
            "rack": st.sampled_from(["", "r1", "r2"]),
            "groups": st.sets(st.sampled_from(["gpu", "big"])),
            "desired": st.sampled_from(["", "on", "off"]),
            "web": st.sampled_from([None, "stopped", "running"]),
            "condition": st.sampled_from([one.value for one in Condition]),
        }
    )
    return {name: draw(one) for name in NAMES}


def table_of(state):
    table = EntityTable(KINDS)
    for name, one in state.items():
        attributes = {"groups": ",".join(sorted(one["groups"]))}
        attributes |= {"rack": one["rack"]} if one["rack"] else {}
        table.apply(Declare(node_id(name), attributes, "site"), 1)
        row = table.make(node_id(name))
        row.stance.verdict, row.stance.since = Verdict(Condition(one["condition"])), NOW - MINUTE
        if one["desired"]:
            table.apply(SetDesired(row.id, "power", one["desired"], "site"), 1)
        for variable in VALUES:
            if one[variable] is not None:
                known, value, age_ms = one[variable]
                (row.belief.known if known else row.belief.remembered)[variable] = fact(
                    value, age_ms
                )
        if one["web"] is not None:
            web = EntityId("service", "web", name)
            table.apply(Declare(web, {}, "site"), 1)
            table.make(web).belief.known["run"] = fact(one["web"])
    return table


def known(one, variable):
    read = one[variable]
    return read[1] if read is not None and read[0] else "unknown"


def age(one, variable):
    return float("inf") if one[variable] is None else one[variable][2]


# Each leaf: its text, and whether it means the entity of this kind on a node of this state.
def leaves():
    variable = st.sampled_from(sorted(VALUES))
    value = variable.flatmap(lambda one: st.tuples(st.just(one), st.sampled_from(VALUES[one])))

    def own(text, is_so):
        return text, lambda kind, _name, one: kind == "node" and is_so(one)

    def lent(text, is_so):
        return f"node.{text}", lambda _kind, _name, one: is_so(one)

    def compared(form, pair):
        name, wanted = pair
        return form(f"{name}={wanted}", lambda one: known(one, name) == wanted)

    def other(form, pair):
        name, wanted = pair
        return form(f"{name}!={wanted}", lambda one: known(one, name) != wanted)

    def older(name, than_s):
        text = f"age(node.{name})>{than_s}s"
        return text, lambda _kind, _name, one: age(one, name) > than_s * 1000

    form = st.sampled_from([own, lent])
    names = st.sampled_from(["r1*", "r[1-2]n[1-2]", "*3", "r1n[1-3]!r1n2", "r2n1,r1n3"])
    return st.one_of(
        st.builds(compared, form, value),
        st.builds(other, form, value),
        st.builds(older, variable, st.sampled_from([1, 60])),
        st.sampled_from(["", "on", "off"]).map(
            lambda wanted: own(f'desired.power="{wanted}"', lambda one: one["desired"] == wanted)
        ),
        st.sampled_from(["", "r1", "r2"]).map(
            lambda rack: lent(f'rack!="{rack}"', lambda one: one["rack"] != rack)
        ),
        st.sampled_from(["gpu", "big"]).map(
            lambda group: (f"@{group}", lambda _kind, _name, one: group in one["groups"])
        ),
        st.sampled_from(list(Condition)).map(
            lambda wanted: lent(f"condition={wanted}", lambda one: one["condition"] == wanted)
        ),
        st.just(
            ("run=running", lambda kind, _name, one: kind == "service" and one["web"] == "running")
        ),
        names.map(lambda text: (text, lambda _kind, name, _one: name in NAMED[text])),
        names.map(
            lambda text: (
                f"node:{text}",
                lambda kind, name, _one: kind == "node" and name in NAMED[text],
            )
        ),
    )


NAMED = {
    "r1*": NAMES[:3],
    "r[1-2]n[1-2]": ["r1n1", "r1n2", "r2n1", "r2n2"],
    "*3": ["r1n3", "r2n3"],
    "r1n[1-3]!r1n2": ["r1n1", "r1n3"],
    "r2n1,r1n3": ["r2n1", "r1n3"],
}


def joined(parts):
    def both(a, b):
        return f"({a[0]}) and {b[0]}", lambda *what: a[1](*what) and b[1](*what)

    def either(a, b):
        return f"({a[0]} or ({b[0]}))", lambda *what: a[1](*what) or b[1](*what)

    def neither(a):
        return f"not ({a[0]})", lambda *what: not a[1](*what)

    # `and` binds closer than `or`: on its right stands what needs no parentheses.
    return st.one_of(
        st.builds(both, parts, leaves()), st.builds(either, parts, parts), st.builds(neither, parts)
    )


@given(states(), st.recursive(leaves(), joined, max_leaves=5))
def test_what_is_meant_is_what_a_plain_evaluator_finds(state, asked):
    text, is_so = asked
    table = table_of(state)
    selector = parse_selector(text)
    there = [(row.id, state[row.id.node]) for row in table]
    expected = {one for one, node in there if is_so(one.kind, one.node, node)}
    event(f"meant: {'none' if not expected else 'all' if len(expected) == len(there) else 'some'}")

    assert {row.id for row in at_once(meant(table, [selector], NOW))} == expected
    assert all(selector.could_mean(one) for one in expected)
    if selector.by_name:
        assert expected == {one for one, _ in there if selector.could_mean(one)}
    views = {row.id: view(row, NOW) for row in table}
    nodes = {one.name: shown for one, shown in views.items() if one.kind == "node"}
    assert {one for one in views if selector.means(ViewSubject(views[one], nodes))} == expected
