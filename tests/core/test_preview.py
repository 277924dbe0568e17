"""What would not be as desired after changes: shown at once, or once workers have planned it."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from haptera.core.catalog import Catalog
from haptera.core.diff import goal
from haptera.core.engine import Engine
from haptera.core.limits import PREVIEW_WITHIN_NS, S
from haptera.core.policies import Policies
from haptera.core.preview import PREVIEWS_MAX, Previews
from haptera.core.proposals import Proposals
from haptera.core.rows.table import Table
from haptera.core.searches import PLANNED, Searches
from haptera.core.state import start
from haptera.core.timers import Timers
from haptera.core.turn import Turn
from haptera.kinds import KINDS
from haptera.model.chain import NoChain, Reason, ReasonKind, ToldChain
from haptera.model.changes import Change, Declare, SetDesired
from haptera.model.effects import Search, Show
from haptera.model.entity import EntityId, node_id
from haptera.model.events import (
    Answered,
    Considered,
    Event,
    Ready,
    Searched,
    Ticked,
    Unsearched,
)
from haptera.model.facts import Fact, Method
from haptera.model.views import Condition, EntityView
from haptera.modules import load
from tests.core.test_engine import ATTRIBUTES, BMC, NODE, OTHER, SIDE, parent, stored, told

CATALOG = Catalog(KINDS, [load("labnode").manifest(), load("service").manifest()])
WHAT = {"power": ("off", "on", "hung"), "agent": ("up",), "run": ("stopped", "running", "failed")}
ON = (SetDesired(NODE, "power", "on", "site"),)
BOTH = (*ON, Declare(OTHER, ATTRIBUTES, "site"), SetDesired(OTHER, "power", "off", "site"))
LOOKS_UP = ToldChain((("bmc.look", "on"),), optimal=True, doubts=False, expanded=2)
NO_WAY = NoChain(Reason(ReasonKind.BLOCKED, "power", "no way to power=off"), 7)


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


def preview(table: Table, *changes: Change) -> tuple[EntityView, ...]:
    """What is shown of these rows."""
    timers, turn = Timers(), Turn(2 * S)
    proposals = Proposals(table, KINDS, Policies(table, CATALOG))
    previews = Previews(table, CATALOG, proposals, Searches(SIDE, timers), timers)
    CATALOG.begin_turn()
    previews.consider(turn, Considered(5, changes))
    while not turn.effects:  # More is to be planned than one turn has time for.
        CATALOG.begin_turn()
        previews.tend(turn)
    (show,) = turn.effects
    assert isinstance(show, Show)
    return show.views


def poor() -> Engine:
    """A parent that can afford no plan, and of which nothing is desired."""
    engine = Engine(SIDE, Catalog(KINDS, [BMC], work_max=0), stored(desired={}), 0, S)
    told(engine, S, Ticked())
    return engine


def shown(engine: Engine, now: int, *events: Event) -> dict[int, dict[str, EntityView]]:
    """The nodes of all previews that are shown, by ticket."""
    shows = [one for one in told(engine, now, *events) if isinstance(one, Show)]
    return {
        show.ticket: {one.entity: one for one in show.views if one.kind == "node"} for show in shows
    }


def searches(engine: Engine, now: int, ticket: int, changes: tuple[Change, ...]) -> list[int]:
    """The searches begun for these changes, which are not shown yet."""
    effects = told(engine, now, Considered(ticket, changes))
    assert not any(isinstance(one, Show) for one in effects)
    return [one.id for one in effects if isinstance(one, Search)]


def stands(view: EntityView) -> tuple[Condition, str | None, list[str]]:
    return view.condition, view.why, [link.part for link in view.chain]


def test_what_the_core_can_plan_is_shown_at_once_and_nothing_is_changed() -> None:
    engine = parent(stored(desired={}))
    (nodes,) = shown(engine, S, Considered(5, BOTH)).values()
    assert {entity: stands(view) for entity, view in nodes.items()} == {
        "node:n01": (Condition.ACTING, None, ["bmc.look"]),
        "node:n02": (Condition.ACTING, None, ["bmc.look"]),
    }
    assert engine.table.get(OTHER) is None


def test_what_would_be_as_desired_is_left_out() -> None:
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"))
    told(engine, 2 * S, Answered(1, "on", 2 * S))
    (nodes,) = shown(engine, 3 * S, Considered(5, BOTH)).values()
    assert list(nodes) == ["node:n02"]


@given(st.randoms(use_true_random=False))
def test_each_entity_stands_as_it_is_planned(random: Random) -> None:
    table = cluster(random, 3)
    views = {one.entity: one for one in preview(table)}
    for row in table:
        node = table.node_of(row)
        domain = CATALOG.domain(row, node)
        wanted = goal(row, domain)
        CATALOG.begin_turn()
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
    preview(table, SetDesired(node_id("n1"), "power", "off", "user:a"))
    assert [(row.id, dict(row.desired), dict(row.known), row.condition) for row in table] == before


def test_changes_that_cannot_be_meant_are_refused() -> None:
    engine = parent(stored(desired={}))
    told(engine, S, Ticked())
    lost = (SetDesired(OTHER, "power", "on", "site"),)
    assert told(engine, S, Considered(5, lost)) == [Show(5, (), "node:n02 is not declared")]


def test_what_workers_plan_is_waited_for_and_shown_together() -> None:
    engine = poor()
    assert searches(engine, S, 5, BOTH) == [1]
    assert shown(engine, 2 * S, Searched(1, LOOKS_UP)) == {}
    (nodes,) = shown(engine, 3 * S, Searched(2, NO_WAY)).values()
    assert {entity: stands(view) for entity, view in nodes.items()} == {
        "node:n01": (Condition.ACTING, None, ["bmc.look"]),
        "node:n02": (Condition.STUCK, "no way to power=off", []),
    }
    assert engine.deadline() is None or engine.deadline() > 4 * S


def test_what_is_not_planned_in_time_is_shown_as_such_and_nobody_waits_for_it_any_more() -> None:
    engine = poor()
    searches(engine, S, 5, BOTH)
    late = S + PREVIEW_WITHIN_NS
    assert shown(engine, late - 1, Ticked()) == {}
    (nodes,) = shown(engine, late, Ticked()).values()
    assert [stands(view) for view in nodes.values()] == [(Condition.ACTING, PLANNED, [])] * 2
    assert told(engine, late, Searched(1, LOOKS_UP)) == []  # The other is not sought any more.


def test_a_worker_that_dies_is_tried_again_for_a_preview_too() -> None:
    engine = poor()
    searches(engine, S, 5, ON)
    assert shown(engine, S, Unsearched(1, "killed by SIGKILL")) == {}
    (again,) = told(engine, 2 * S, Ticked())
    assert isinstance(again, Search)
    assert list(shown(engine, 3 * S, Searched(again.id, LOOKS_UP))) == [5]


def test_past_so_many_that_wait_a_preview_is_shown_as_it_is() -> None:
    engine = poor()
    for ticket in range(PREVIEWS_MAX):
        searches(engine, S, ticket, ON)
    (nodes,) = shown(engine, S, Considered(99, ON)).values()
    assert stands(nodes["node:n01"]) == (Condition.ACTING, PLANNED, [])
    assert sorted(shown(engine, 2 * S, Searched(1, LOOKS_UP))) == list(range(PREVIEWS_MAX))
