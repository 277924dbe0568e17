"""A preview tells of what would not be as desired, and touches nothing."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from haptera.core.catalog import Catalog
from haptera.core.diff import goal
from haptera.core.preview import COLUMNS_MIN, preview
from haptera.core.rows.table import Table
from haptera.core.state import start
from haptera.kinds import KINDS
from haptera.model.chain import NoChain
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.facts import Fact, Method
from haptera.model.views import Condition, EntityView
from haptera.modules import load

S = 1_000_000_000
CATALOG = Catalog(KINDS, [load("labnode").manifest(), load("service").manifest()])
WHAT = {"power": ("off", "on", "hung"), "agent": ("up",), "run": ("stopped", "running", "failed")}


def cluster(random: Random, nodes: int) -> Table:
    """Nodes that should be on, with a service each that should run, seen in all sorts of states."""
    table = Table(KINDS)
    for number in range(nodes):
        node, service = node_id(f"n{number}"), EntityId("service", "web", f"n{number}")
        table.apply(Declare(node, {"platform": "labnode"}, "site"), 1)
        table.apply(SetDesired(node, "power", "on", "site"), 1)
        table.apply(Declare(service, {}, "site"), 1)
        table.apply(SetDesired(service, "run", "running", "site"), 1)
        see(table, node, random, "power", "agent")
        see(table, service, random, "run")
    return table


def see(table: Table, entity: EntityId, random: Random, *names: str) -> None:
    row = table.get(entity)
    assert row is not None
    for name in names:
        fact = Fact(random.choice(WHAT[name]), "m", Method.READ, S, 0)
        random.choice([row.known, row.remembered, {}])[name] = fact


def shown(views: list[EntityView]) -> dict[str, tuple[Condition, list[str], str | None]]:
    return {
        one.entity: (one.condition, [link.part for link in one.chain], one.why) for one in views
    }


def test_what_would_be_as_desired_is_left_out() -> None:
    table = cluster(Random(1), 2)
    for name in ("n0", "n1"):
        row = table.get(node_id(name))
        assert row is not None
        row.remembered.clear()
        row.known = {"power": Fact("on", "m", Method.READ, S, 0)}
    off = SetDesired(node_id("n1"), "power", "off", "user:a")
    views = [one for one in preview(table, CATALOG, [off], 2 * S) if one.kind == "node"]
    assert shown(views) == {"node:n1": (Condition.ACTING, ["labnode.switch_off"], None)}


@given(st.randoms(use_true_random=False), st.sampled_from([2, COLUMNS_MIN]))
def test_each_entity_stands_as_it_is_planned(random: Random, nodes: int) -> None:
    table = cluster(random, nodes)
    views = {one.entity: one for one in preview(table, CATALOG, [], 2 * S)}
    for row in table:
        node = table.node_of(row)
        domain = CATALOG.domain(row, node)
        wanted = goal(row, domain)
        answer = CATALOG.plan(row, node, start(row, node, domain, wanted), wanted, frozenset())
        view = views.get(str(row.id))
        if isinstance(answer, NoChain):
            assert view is not None
            assert (view.chain, view.why) == ([], answer.reason.text)
        else:
            assert (len(view.chain) if view else 0) == len(answer.links)


def test_a_preview_touches_nothing() -> None:
    table = cluster(Random(3), 4)
    before = [(row.id, dict(row.desired), dict(row.known), row.condition) for row in table]
    preview(table, CATALOG, [SetDesired(node_id("n1"), "power", "off", "user:a")], 2 * S)
    assert [(row.id, dict(row.desired), dict(row.known), row.condition) for row in table] == before
