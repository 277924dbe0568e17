"""What changes would start: shown at once, or once workers have planned it."""

import gc
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.core.decide.plan_queue import PLANNED, PlanQueue
from haptera.core.desired.freezes import Freezes
from haptera.core.desired.policies import Policies
from haptera.core.desired.proposals import Proposals
from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.preview import grouping
from haptera.core.preview.draft import (
    DRAFTED_A_TURN_MAX,
    LET_GO_AT_ONCE,
    SORTED_A_TURN_MAX,
    Case,
    Draft,
    Drafting,
)
from haptera.core.preview.grouping import FOLDING, TOLD_A_TURN_MAX, PreviewContext, Telling
from haptera.core.preview.preview import PREVIEW_WITHIN_NS, PREVIEWS_MAX, Previews
from haptera.core.safety.budget_rules import BudgetRules
from haptera.core.safety.budgets import Budgets, Where
from haptera.core.state.allowance import TURN_WORK_MAX, TurnAllowance
from haptera.core.state.diff import goal
from haptera.core.state.limits import S
from haptera.core.state.row import EntityState
from haptera.core.state.start import start
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.state.typical_durations import Usual
from haptera.core.views.query import link_view
from haptera.kinds import KINDS
from haptera.kinds.rules.budget import Per
from haptera.model.answers.plan import AtMost, Plan, PlanFreeze, PlanGroup, Rewrite, Worst
from haptera.model.answers.views import Condition
from haptera.model.chain import Chain, NoChain, Reason, ReasonKind, ToldChain
from haptera.model.changes import Cause, Change, Declare, SetDesired, Undeclare, UnsetDesired
from haptera.model.effects import PlanReply, SearchPlan
from haptera.model.entity import EntityId, node_id
from haptera.model.events import (
    Answered,
    Considered,
    Event,
    PlanFailed,
    PlanFound,
    Ready,
    Ticked,
)
from haptera.model.facts import Fact, Method
from haptera.model.parts import Manifest, Requirement
from haptera.modules import load
from haptera.planner.contingent import outcomes
from haptera.planner.domain.bars import NO_BARS
from haptera.planner.domain.bitstate import Field
from haptera.planner.domain.domain import Domain
from haptera.planner.plan_query import query_of
from haptera.planner.planner import plan as search
from haptera.selectors.names import split
from haptera.selectors.nodeset import expand
from tests.core.scenario import ATTRIBUTES, BMC, NODE, OTHER, SIDE, parent, row_of, stored, told
from tests.core.test_evidence import GATE
from tests.core.test_safety import OFF

CATALOG = Catalog(KINDS, [load(one).manifest() for one in ("labnode", "service", "jobs")])
ON_OFF, RUNS = ("off", "on"), ("stopped", "running")
WHAT = {
    "power": ("off", "on", "hung"),
    "agent": ("up",),
    "busy": ("free", "busy"),
    "run": ("stopped", "running", "failed"),
}
# More names than these take a turn of their own to be folded.
FOLDED_AT_ONCE = TOLD_A_TURN_MAX // FOLDING
LAB, WEB = node_id("n1"), EntityId("service", "web", "n1")
ON = (SetDesired(NODE, "power", "on", "site"),)
BOTH = (*ON, Declare(OTHER, ATTRIBUTES, "site"), SetDesired(OTHER, "power", "off", "site"))
LOOKS_UP = ToldChain((("bmc.look", "on"),), optimal=True, doubts=False, expanded=2)
NO_WAY = NoChain(Reason(ReasonKind.BLOCKED, "power", "no way to power=off"), 7)


def cluster(random: Random, nodes: int) -> tuple[EntityTable, list[Change]]:
    """Nodes with a service each, seen in all sorts of states; and changes that send most on."""
    table, changes = EntityTable(KINDS), list[Change]()
    for number in range(nodes):
        node, service = node_id(f"n{number}"), EntityId("service", "web", f"n{number}")
        table.apply(Declare(node, {"platform": "labnode"}, "site"), 1)
        table.apply(Declare(service, {}, "site"), 1)
        see(table, node, random, "power", "agent", "busy")
        see(table, service, random, "run")
        for entity, name, values in ((node, "power", ON_OFF), (service, "run", RUNS)):
            if random.random() < 1 / 4:
                table.apply(SetDesired(entity, name, random.choice(values), "site"), 1)
            if random.random() < 3 / 4:
                changes.append(SetDesired(entity, name, random.choice(values), "user:a"))
    return table, changes


def see(table: EntityTable, entity: EntityId, random: Random, *names: str) -> None:
    row = row_of(table, entity)
    for name in names:
        fact = Fact(random.choice(WHAT[name]), "m", Method.READ, S, 0)
        random.choice([row.belief.known, row.belief.remembered, {}])[name] = fact


def previewed(
    table: EntityTable,
    *changes: Change,
    usual: Usual | None = None,
    catalog: Catalog = CATALOG,
    wall_offset_ns: int = 0,
    brake: str | None = None,
    silent: bool = False,
) -> Plan:
    """The plan of these changes."""
    timers, turn = Timers(), Turn(2 * S)
    proposals = Proposals(table, catalog, Policies(table, catalog))
    searches = PlanQueue(SIDE, timers)
    freezes = Freezes(SIDE, table, timers, proposals)
    freezes.set_clock(wall_offset_ns)
    told_by = PreviewContext(
        table,
        catalog,
        usual or Usual(),
        freezes,
        lambda _: brake,
        rounds(table),
        lambda *_: silent,
    )
    previews = Previews(told_by, proposals, searches, timers)
    previews.consider(turn, Considered(5, changes))
    while not turn.effects:  # More is to be planned than one turn has time for.
        turn.begin(2 * S)
        proposals.checks.advance(turn)
        previews.advance(turn)
    (show,) = turn.effects
    assert isinstance(show, PlanReply)
    assert show.plan is not None
    return show.plan


def grounds(table: EntityTable, catalog: Catalog = CATALOG) -> PreviewContext:
    """A table, and nothing laid over it but its freezes."""
    proposals = Proposals(table, catalog, Policies(table, catalog))
    freezes = Freezes(SIDE, table, Timers(), proposals)
    usual, by_budgets = Usual(), rounds(table)
    return PreviewContext(
        table, catalog, usual, freezes, lambda _: None, by_budgets, lambda *_: False
    )


def rounds(table: EntityTable) -> grouping.Rounds:
    """By the default budgets, of nodes in no group."""
    rules = BudgetRules(table)
    budgets = Budgets(
        lambda _: sum(row.id.kind == "node" for row in table), lambda _: [], rules.instances
    )

    def where(entity: EntityId) -> Where:
        if Per.SERVICE in rules.where(entity):
            return rules.where(entity)
        return {Per.NODE: entity.node, Per.GROUP: None, Per.PARENT: None}

    return lambda entities: budgets.rounds((one, where(one)) for one in entities)


def members(group: PlanGroup) -> list[EntityId]:
    """The entities of a group, from what is told of them."""
    kind, _, name = group.of.partition(" ")
    nodes = expand(group.on or "")
    assert len(nodes) == group.entities
    return [EntityId(kind, name or on, on) for on in nodes]


def poor(module: Manifest = BMC) -> Engine:
    """A parent that can afford no plan, and of which nothing is desired."""
    engine = Engine(SIDE, Catalog(KINDS, [module], work_max=0), stored(desired={}), 0, S)
    told(engine, S, Ticked())
    return engine


def shown(engine: Engine, now: int, *events: Event) -> dict[int, Plan]:
    """All plans that are shown, by ticket, once the turns are over that come at once."""
    effects = told(engine, now, *events)
    while engine.deadline() == now:
        effects += told(engine, now, Ticked())
    shows = [one for one in effects if isinstance(one, PlanReply)]
    return {show.ticket: show.plan for show in shows if show.plan is not None}


def searches(engine: Engine, now: int, ticket: int, changes: tuple[Change, ...]) -> list[int]:
    """The searches begun for these changes, which are not shown yet."""
    effects = told(engine, now, Considered(ticket, changes))
    assert not any(isinstance(one, PlanReply) for one in effects)
    return [one.id for one in effects if isinstance(one, SearchPlan)]


def stands(plan: Plan) -> dict[str, tuple[Condition, str | None, list[str]]]:
    return {
        one.title: (one.condition, one.why, [link.part for link in one.chain])
        for one in plan.groups
    }


def test_what_the_core_can_plan_is_shown_at_once_and_nothing_is_changed() -> None:
    engine = parent(stored(desired={}))
    (plan,) = shown(engine, S, Considered(5, BOTH)).values()
    looks = (Condition.ACTING, None, ["bmc.look"])
    assert stands(plan) == {"node on n01": looks, "node on n02": looks}
    assert engine.table.get(OTHER) is None


def test_what_would_be_as_desired_is_left_out() -> None:
    engine = parent(stored(desired={"agent": "up"}))
    told(engine, S, Ready("bmc"))
    told(engine, 2 * S, Answered(1, "on", 2 * S))
    (plan,) = shown(engine, 3 * S, Considered(5, BOTH[1:])).values()
    assert list(stands(plan)) == ["node on n02"]


def test_what_goes_there_anyway_is_counted_apart() -> None:
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ticked())
    (same,) = shown(engine, S, Considered(5, ON)).values()
    (other,) = shown(engine, S, Considered(6, BOTH[1:])).values()
    assert (stands(same), same.anyway) == ({}, {"waiting": 1})
    assert (list(stands(other)), other.anyway) == (["node on n02"], {"waiting": 1})
    (none,) = shown(engine, S, Considered(7, (UnsetDesired(NODE, "power"),))).values()
    assert (stands(none), none.anyway) == ({}, {})


@given(st.randoms(use_true_random=False))
def test_each_member_of_a_group_has_its_answer_when_planned_alone(random: Random) -> None:
    table, changes = cluster(random, 6)
    plan = previewed(table, *changes)
    before = {row.id: alone(table, row) for row in table}
    for change in changes:
        table.apply(change, 2)
    grouped = {entity: group for group in plan.groups for entity in members(group)}
    assert sum(group.entities for group in plan.groups) == len(grouped)
    for row in table:
        domain, state, wanted, answer = after = alone(table, row)
        if after == before[row.id] or (isinstance(answer, Chain) and not answer.links):
            assert row.id not in grouped
            continue
        group = grouped[row.id]
        told = {name: domain.fields[name] for name in group.state}
        assert group.goal == wanted
        assert group.state == {name: status(field, state) for name, field in told.items()}
        if isinstance(answer, NoChain):
            assert (group.chain, group.why, group.cost) == ([], answer.reason.text, None)
        else:
            assert (group.chain, group.cost) == ([*map(link_view, answer.links)], answer.cost)


def alone(
    table: EntityTable, row: EntityState
) -> tuple[Domain, int, dict[str, str], Chain | NoChain | None]:
    """The entity's class, start, goal and answer."""
    node = table.node_of(row)
    domain = CATALOG.domain(row, node)
    wanted = goal(row, domain)
    state = start(row, node, domain, wanted)
    answer = CATALOG.plans.plan(query_of(domain, state, wanted, NO_BARS), TurnAllowance())
    return domain, state, wanted, answer


def status(field: Field, state: int) -> str:
    memory = field.memory(state)
    return field.value(state) or (f"{memory}?" if memory else field.values[0])


@given(st.randoms(use_true_random=False))
def test_the_disrupted_nodes_are_those_with_a_disruptive_step_in_some_world_or_a_service_stopped(
    random: Random,
) -> None:
    table, changes = cluster(random, 6)
    plan = previewed(table, *changes)
    disrupted = {
        change.entity.node
        for change in changes
        if isinstance(change, SetDesired)
        if change.value == "stopped" and runs(table, change.entity)
    }
    for change in changes:
        table.apply(change, 2)
    for group in plan.groups:
        for entity in members(group):
            row = row_of(table, entity)
            assert row.id.node is not None
            domain, state, wanted, _ = alone(table, row)
            worst = outcomes(domain, state, lambda one, d=domain, w=wanted: search(d, one, w))
            assert worst is not None
            harms = row.kind.name == "node" or runs(table, entity)
            if harms and any(step.disruptive for step in worst.steps):
                disrupted.add(row.id.node)
    assert set(expand(plan.disrupted) if plan.disrupted else ()) == disrupted
    assert plan.disrupted_nodes == len(disrupted)


def test_nodes_that_nobody_knew_of_count_among_all_that_may_be_disrupted() -> None:
    """They may be machines that run: the first site of a cluster is not refused at any radius."""
    new = [node_id(f"n{number}") for number in range(20)]
    declared = [Declare(one, {"platform": "labnode"}, "site") for one in new]
    offs = [SetDesired(one, "power", "off", "site") for one in new]
    table = EntityTable(KINDS)
    plan = previewed(table, *declared, *offs)
    assert (plan.disrupted_nodes, plan.nodes) == (20, 20)
    assert (plan.is_wide(99), plan.is_wide(100)) == (True, False)


def runs(table: EntityTable, entity: EntityId) -> bool:
    """Whether it runs, or did when it was last seen, and was not to be stopped before."""
    row = row_of(table, entity)
    fact = row.belief.known.get("run") or row.belief.remembered.get("run")
    wanted = row.desired.values.get("run")
    before = None if wanted is None else wanted.value
    return fact is not None and fact.value == "running" and before != "stopped"


def test_a_preview_touches_nothing() -> None:
    table, changes = cluster(Random(3), 4)
    before = [
        (row.id, dict(row.desired.values), dict(row.belief.known), row.stance.condition)
        for row in table
    ]
    previewed(table, *changes, SetDesired(node_id("n1"), "power", "off", "user:a"))
    assert [
        (row.id, dict(row.desired.values), dict(row.belief.known), row.stance.condition)
        for row in table
    ] == before


def test_changes_that_cannot_be_meant_are_refused() -> None:
    engine = parent(stored(desired={}))
    told(engine, S, Ticked())
    lost = (SetDesired(OTHER, "power", "on", "site"),)
    assert told(engine, S, Considered(5, lost)) == [
        PlanReply(5, None, "node:n02 is not declared", Cause.INVALID)
    ]


def test_what_workers_plan_is_waited_for_and_shown_together() -> None:
    engine = poor()
    assert searches(engine, S, 5, BOTH) == [1]
    assert shown(engine, 2 * S, PlanFound(1, LOOKS_UP)) == {}
    (plan,) = shown(engine, 3 * S, PlanFound(2, NO_WAY)).values()
    assert stands(plan) == {
        "node on n01": (Condition.ACTING, None, ["bmc.look"]),
        "node on n02": (Condition.STUCK, "no way to power=off", []),
    }
    assert engine.deadline() is None or engine.deadline() > 4 * S


def test_what_is_not_planned_in_time_is_shown_as_such_and_nobody_waits_for_it_any_more() -> None:
    engine = poor()
    searches(engine, S, 5, BOTH)
    late = S + PREVIEW_WITHIN_NS
    assert shown(engine, late - 1, Ticked()) == {}
    (plan,) = shown(engine, late, Ticked()).values()
    assert [*stands(plan).values()] == [(Condition.ACTING, PLANNED, [])] * 2
    assert told(engine, late, PlanFound(1, LOOKS_UP)) == []  # The other is not sought any more.


def test_what_is_not_planned_may_disrupt_where_anything_of_its_class_does() -> None:
    engine = poor(load("labnode").manifest())
    lab = Declare(OTHER, {"platform": "labnode"}, "site")
    searches(engine, S, 5, (*ON, lab, SetDesired(OTHER, "power", "on", "site")))
    (plan,) = shown(engine, S + PREVIEW_WITHIN_NS, Ticked()).values()
    assert (plan.disrupted, plan.nodes) == ("n02", 2)  # No part is for the other's platform.


def test_a_worker_that_dies_is_tried_again_for_a_preview_too() -> None:
    engine = poor()
    searches(engine, S, 5, ON)
    assert shown(engine, S, PlanFailed(1, "killed by SIGKILL")) == {}
    (again,) = told(engine, 2 * S, Ticked())
    assert isinstance(again, SearchPlan)
    assert list(shown(engine, 3 * S, PlanFound(again.id, LOOKS_UP))) == [5]


def test_past_so_many_that_wait_a_preview_is_shown_as_it_is() -> None:
    engine = poor()
    for ticket in range(PREVIEWS_MAX):
        searches(engine, S, ticket, ON)
    (plan,) = shown(engine, S, Considered(99, ON)).values()
    assert stands(plan)["node on n01"] == (Condition.ACTING, PLANNED, [])
    assert sorted(shown(engine, 2 * S, PlanFound(1, LOOKS_UP))) == list(range(PREVIEWS_MAX))


def known(table: EntityTable, entity: EntityId, **values: str) -> None:
    row = row_of(table, entity)
    for name, value in values.items():
        row.belief.known[name] = Fact(value, "m", Method.READ, S, 0)


def lab_node(**values: str) -> EntityTable:
    """A node of the lab that should be on and was seen so, with a service that runs."""
    table = EntityTable(KINDS)
    table.apply(Declare(LAB, {"platform": "labnode"}, "site"), 1)
    table.apply(SetDesired(LAB, "power", "on", "site"), 1)
    table.apply(Declare(WEB, {}, "site"), 1)
    table.apply(SetDesired(WEB, "run", "running", "site"), 1)
    known(table, LAB, **values)
    if "agent" in values:
        known(table, WEB, run="running")
    return table


def test_who_is_hit_and_who_is_waited_for_is_named() -> None:
    off = SetDesired(LAB, "power", "off", "site")
    (free,) = previewed(lab_node(power="on", agent="up", busy="free"), off).groups
    assert (free.services, free.busy, free.worst) == ("service:web@n1", None, None)
    (busy,) = previewed(lab_node(power="on", agent="up", busy="busy"), off).groups
    assert (busy.services, busy.busy) == ("service:web@n1", "n1")
    (unseen,) = previewed(lab_node(), off).groups
    assert (unseen.services, unseen.busy) == (None, None)


def test_the_worst_is_told_where_a_chain_begins_with_a_look() -> None:
    (group,) = previewed(lab_node(), SetDesired(LAB, "power", "off", "site")).groups
    does = "brings power to off"
    assert group.worst == Worst(
        ["power"], [AtMost("labnode.switch_off", does, disruptive=True, entities=1)], 0, whole=True
    )


def test_how_long_it_takes_is_the_sum_of_what_was_measured() -> None:
    usual = Usual()
    table = lab_node(power="off")
    up = SetDesired(LAB, "agent", "up", "site")
    table.apply(SetDesired(LAB, "power", "off", "site"), 1)
    (before,) = previewed(table, up, SetDesired(LAB, "power", "on", "site"), usual=usual).groups
    assert [link.part for link in before.chain] == ["labnode.switch_on", "sync.hear"]
    assert (before.usual_ms, before.unmeasured) == (0, ["labnode.switch_on", "sync.hear"])
    usual.took("labnode.switch_on", 2 * S)
    (after,) = previewed(table, up, SetDesired(LAB, "power", "on", "site"), usual=usual).groups
    assert (after.usual_ms, after.unmeasured) == (2_000, ["sync.hear"])


def test_how_long_all_take_counts_the_rounds_in_which_the_budgets_let_them_go() -> None:
    table, usual = EntityTable(KINDS), Usual()
    nodes = [node_id(f"n{number}") for number in range(40)]
    for node in nodes:
        table.apply(Declare(node, {"platform": "labnode"}, "site"), 1)
        known(table, node, power="on", agent="up", busy="free")
    usual.took("labnode.switch_off", 3 * S)
    offs = [SetDesired(node, "power", "off", "site") for node in nodes]
    (group,) = previewed(table, *offs, usual=usual).groups
    assert [link.part for link in group.chain] == ["labnode.switch_off"]
    assert (group.rounds, group.usual_ms, group.at_least_ms) == (20, 3_000, 60_000)
    (few,) = previewed(table, *offs[:2], usual=usual).groups
    assert (few.rounds, few.at_least_ms) == (1, 3_000)


def test_a_service_that_is_replaced_disrupts_where_it_runs_in_rounds_of_its_own_budget() -> None:
    table, usual = EntityTable(KINDS), Usual()
    nodes = [f"n{number}" for number in range(20)]
    for name in nodes:
        node, web = node_id(name), EntityId("service", "web", name)
        table.apply(Declare(node, {"platform": "labnode"}, "site"), 1)
        table.apply(Declare(web, {}, "site"), 1)
        table.apply(SetDesired(web, "run", "running", "site"), 1)
        known(table, node, power="on", agent="up", busy="busy")
        known(table, web, run="running", applied="current")
    usual.took("service.replace", 2 * S)
    ports = [SetDesired(EntityId("service", "web", name), "port", 81, "site") for name in nodes]
    plan = previewed(table, *ports, usual=usual)
    (group,) = plan.groups
    assert [(link.part, link.disruptive) for link in group.chain] == [
        ("service.replace", True),
        ("service.look_applied", False),
    ]
    assert (plan.disrupted_nodes, group.rounds, group.at_least_ms) == (20, 10, 20_000)
    assert (group.services, group.busy, group.why) == (None, None, None), "it harms nothing else"
    stops = [
        SetDesired(EntityId("service", "web", name), "run", "stopped", "site") for name in nodes
    ]
    stopped = previewed(table, *stops)
    assert (stopped.disrupted_nodes, stopped.groups[0].rounds) == (20, 1)


def test_a_service_that_is_no_longer_declared_is_stopped() -> None:
    table = lab_node(power="on", agent="up")
    (group,) = previewed(table, Undeclare(WEB)).groups
    assert (group.title, group.goal) == ("service web on n1", {"run": "stopped"})
    assert [link.part for link in group.chain] == ["service.stop"]


def test_whoever_undeclares_disrupts_whatever_is_looked_after_no_more() -> None:
    table = lab_node(power="on", agent="up")
    assert previewed(table, Undeclare(WEB)).disrupted == "n1"
    assert previewed(table, Undeclare(LAB), Undeclare(WEB)).disrupted == "n1"
    table.apply(Declare(node_id("n2"), {}, "site"), 1)
    assert previewed(table, Undeclare(node_id("n2"))).disrupted == "n2"
    known(table, WEB, run="failed")
    assert previewed(table, Undeclare(WEB)).disrupted is None


def test_what_is_on_a_node_goes_elsewhere_with_its_attributes() -> None:
    table = lab_node(power="off")
    (group,) = previewed(table, Declare(LAB, {"platform": "other"}, "site")).groups
    assert (group.title, group.condition) == ("node on n1", Condition.STUCK)


def frozen(
    table: EntityTable, of: str, owner: str = "user:eve", until_s: int | None = None
) -> EntityId:
    """A freeze more in the table."""
    entity = EntityId("freeze", f"f{len(table)}", None)
    values = {"of": of, "reason": "board swap"} | ({} if until_s is None else {"until_s": until_s})
    table.apply(Declare(entity, {}, owner), 1)
    for name, value in values.items():
        table.apply(SetDesired(entity, name, value, owner), 1)
    return entity


def test_what_is_frozen_is_told_with_the_freeze_that_lasts_longest() -> None:
    table, nodes = EntityTable(KINDS), [node_id(f"n{number}") for number in range(1, 5)]
    for node in nodes:
        table.apply(Declare(node, {"platform": "labnode"}, "site"), 1)
    frozen(table, "n[1-3]", until_s=60)
    frozen(table, "node:n[3-4]", "user:bob")
    frozen(table, "service:*", "user:bob")
    offs = [SetDesired(node, "power", "off", "site") for node in nodes]
    by_eve = PlanFreeze("n[1-2]", 2, "user:eve", 60, "board swap")
    by_bob = PlanFreeze("n[3-4]", 2, "user:bob", None, "board swap")
    (group,) = previewed(table, *offs).groups
    assert group.frozen == [by_eve, by_bob]
    (group,) = previewed(table, *offs, wall_offset_ns=60 * S).groups
    assert group.frozen == [by_bob]  # Of the other, the time has come.


def test_what_is_declared_only_then_is_frozen_by_the_attributes_it_would_have() -> None:
    table = lab_node(power="off")
    frozen(table, "@rack:r1")
    to_rack = Declare(LAB, {"platform": "labnode", "rack": "r1"}, "site")
    (group,) = previewed(table, to_rack, SetDesired(WEB, "run", "stopped", "site")).groups
    assert (group.title, len(group.frozen)) == ("service web on n1", 1)
    new = node_id("n2")
    plan = previewed(
        table, Declare(new, {"rack": "r1"}, "site"), SetDesired(new, "power", "on", "s")
    )
    assert [(one.on, len(one.frozen)) for one in plan.groups] == [("n2", 1)]


def test_that_the_brake_is_on_is_told_and_is_nothing_that_a_plan_stands_on() -> None:
    off = SetDesired(LAB, "power", "off", "site")
    braked, plan = previewed(lab_node(), off, brake="12 of 40"), previewed(lab_node(), off)
    assert (braked.brake, plan.brake) == ("12 of 40", None)
    assert braked.digest == plan.digest


def test_what_waits_for_an_agent_that_may_stay_silent_is_told_before_with_the_way_out() -> None:
    off = SetDesired(LAB, "power", "off", "site")
    (group,) = previewed(lab_node(power="on"), off, silent=True).groups
    assert (group.condition, [link.part for link in group.chain]) == (
        Condition.WAITING,
        ["labnode.switch_off"],
    )
    assert group.why == (
        "labnode.switch_off waits on n1: no agent is heard there, which would have to permit it;"
        " `haptera override NODE --why TEXT` goes on without"
    )
    table = lab_node(power="off")
    table.apply(SetDesired(LAB, "power", "off", "site"), 1)
    (on,) = previewed(table, SetDesired(LAB, "power", "on", "site"), silent=True).groups
    assert (on.condition, on.why) == (Condition.ACTING, None)


def test_what_is_rewritten_is_told_once_for_all_of_which_it_is_so() -> None:
    table = lab_node()
    other = node_id("n2")
    changes = [
        Declare(other, {"rack": "r2"}, "site"),
        *(SetDesired(one, "power", "off", "user:eve") for one in (LAB, other)),
        UnsetDesired(WEB, "run"),
    ]
    on_site, off_eve = ("on", "site"), ("off", "user:eve")
    assert previewed(table, *changes).rewrites == [
        Rewrite("node", "n2", 1, None, None, None, '{"rack":"r2"}', "site"),
        Rewrite("node", "n1", 1, "power", *on_site, *off_eve),
        Rewrite("node", "n2", 1, "power", None, None, *off_eve),
        Rewrite("service web", "n1", 1, "run", "running", "site", None, None),
    ]


@given(st.randoms(use_true_random=False), st.integers(1, 5))
def test_a_draft_made_bit_by_bit_is_the_one_made_at_once(random: Random, at_once: int) -> None:
    table, changes = cluster(random, 4)
    whole = Drafting(table, CATALOG, changes).go_on()
    drafting = Drafting(table, CATALOG, changes)
    drafts = [drafting.go_on(at_once)]
    while drafts[-1] is None:
        drafts.append(drafting.go_on(at_once))
    assert whole is not None
    assert told_of(drafts[-1]) == told_of(whole)
    entities = {one.entity for one in changes}
    letting_go = -(-sum(one.kind == "node" for one in entities) // LET_GO_AT_ONCE)
    assert len(drafts) == max(1, -(-(len(entities) + letting_go) // at_once))


@pytest.mark.campaign
def test_a_draft_keeps_a_row_for_each_case_and_lets_go_of_the_others_some_at_a_time() -> None:
    table, names = EntityTable(KINDS), [f"n{number}" for number in range(3 * LET_GO_AT_ONCE)]
    webs = [EntityId("service", "web", name) for name in names]
    for entity in [*map(node_id, names), *webs]:
        table.apply(Declare(entity, {"platform": "labnode"}, "site"), 1)
    changes = [SetDesired(web, "run", "running", "site") for web in webs]
    changes += [SetDesired(node_id(name), "power", "off", "site") for name in names]
    gc.collect()  # What other tests have left is not to be counted, nor collected meanwhile.
    before, drafting = rows_alive(), Drafting(table, CATALOG, changes)
    alive, draft = [before], drafting.go_on(1)
    while draft is None:
        alive.append(rows_alive())
        draft = drafting.go_on(1)
    alive.append(rows_alive())
    assert max(then - now for then, now in pairwise(alive)) == LET_GO_AT_ONCE
    assert len(draft.cases) == 2
    assert alive[-1] - before <= 2 * len(draft.cases)  # Of one of it, and of its node.


def test_names_are_split_as_they_are_drafted_not_when_they_are_folded() -> None:
    table, names = EntityTable(KINDS), [f"never{number}seen" for number in range(9)]
    changes = [Declare(node_id(name), {"platform": "labnode"}, "site") for name in names]
    before = split.cache_info().misses
    told = telling(table, changes)
    assert split.cache_info().misses - before == len(names)
    assert told.go_on(1_000_000_000) is not None
    assert split.cache_info().misses - before == len(names)


def rows_alive() -> int:
    return sum(isinstance(one, EntityState) for one in gc.get_objects())


def test_very_many_changes_are_sorted_in_many_turns_before_they_are_drafted() -> None:
    changes = [SetDesired(LAB, "power", "off", "site")] * (2 * SORTED_A_TURN_MAX + 1)
    drafting = Drafting(lab_node(), CATALOG, changes)
    assert [drafting.go_on() is None for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(("platform", "reached"), [("labnode", {LAB}), ("other", {LAB, WEB})])
def test_what_is_on_a_node_is_drafted_too_where_its_attributes_change(
    platform: str, reached: set[EntityId]
) -> None:
    table = lab_node(power="on", agent="up", busy="free")
    changed = Declare(LAB, row_of(table, LAB).desired.attributes | {"platform": platform}, "site")
    draft = Drafting(table, CATALOG, [changed]).go_on()
    assert draft is not None
    on_their_way = (entity for case in draft.cases for entity in case.entities)
    assert {*draft.stays, *on_their_way} == reached


def told_of(draft: Draft) -> object:
    cases = [(one.state, one.goal, one.entities) for one in draft.cases]
    return draft.rewrites, cases, list(draft.stays)


@given(st.randoms(use_true_random=False))
def test_a_plan_told_bit_by_bit_is_the_one_told_at_once(random: Random) -> None:
    table, changes = cluster(random, 4)
    frozen(table, "n[0-1]")
    assert telling(table, changes).go_on(1_000_000_000) == previewed(table, *changes)
    bits = telling(table, changes)
    plans = [bits.go_on(0)]
    while plans[-1] is None:
        plans.append(bits.go_on(0))
    assert plans[-1] == previewed(table, *changes)
    assert len(plans) > len(table)  # A piece is one entity, or a set of nodes that is folded.


def telling(table: EntityTable, changes: list[Change]) -> Telling:
    draft = Drafting(table, CATALOG, changes).go_on()
    assert draft is not None
    return Telling(grounds(table), draft, map(answered, draft.cases), 2 * S)


def answered(case: Case) -> grouping.AnsweredCase:
    def planned(state: int) -> Chain | NoChain | None:
        return CATALOG.plans.plan(query_of(case.domain, state, case.goal, NO_BARS), TurnAllowance())

    worst = outcomes(case.domain, case.state, planned)
    return grouping.AnsweredCase(case, planned(case.state), worst)


def test_what_is_desired_otherwise_meanwhile_has_a_plan_made_anew() -> None:
    nodes = [node_id(f"n{number}") for number in range(FOLDED_AT_ONCE + 1)]
    changes = tuple(SetDesired(node, "power", "off", "site") for node in nodes)

    def considered() -> tuple[EntityTable, Previews, Turn]:
        table, timers, turn = EntityTable(KINDS), Timers(), Turn(2 * S)
        for node in nodes:
            table.apply(Declare(node, {"platform": "labnode"}, "site"), 1)
        proposals = Proposals(table, CATALOG, Policies(table, CATALOG))
        previews = Previews(grounds(table), proposals, PlanQueue(SIDE, timers), timers)
        previews.consider(turn, Considered(5, changes))
        while proposals.checks.waits:
            proposals.checks.advance(turn)
        return table, previews, turn

    previewed(considered()[0], *changes)  # From now on all is planned already.
    needed = turns(*considered()[1:])
    assert needed > FOLDED_AT_ONCE / DRAFTED_A_TURN_MAX + 1
    for before in (1, needed - 1):  # While it is drafted, and when it is all but told.
        table, previews, turn = considered()
        assert turns(previews, turn, before) == before
        assert turn.effects == []
        table.apply(SetDesired(nodes[0], "power", "on", "user:eve"), 2)
        assert turns(previews, turn) >= needed
        assert turn.effects == [PlanReply(5, previewed(table, *changes))]


def turns(previews: Previews, turn: Turn, count_max: int = 1_000) -> int:
    """So many turns at the most until a plan is shown; how many these were."""
    for count in range(count_max):
        if turn.effects:
            return count
        turn.begin(2 * S)
        previews.advance(turn)
    return count_max


# So many changes are checked in a few turns, before any of it is drafted.
CHECKED_WITHIN_TURNS = 8


def test_plans_are_waited_for_from_when_all_is_drafted_on() -> None:
    table, catalog = EntityTable(KINDS), Catalog(KINDS, [load("labnode").manifest()], work_max=0)
    nodes = [node_id(f"n{number}") for number in range(DRAFTED_A_TURN_MAX + 1)]
    for node in nodes:
        table.apply(Declare(node, {"platform": "labnode"}, "site"), 1)
    changes = tuple(SetDesired(node, "power", "off", "site") for node in nodes)
    timers, turn = Timers(), Turn(S)
    proposals = Proposals(table, catalog, Policies(table, catalog))
    previews = Previews(grounds(table, catalog), proposals, PlanQueue(SIDE, timers), timers)
    previews.consider(turn, Considered(5, changes))
    for _ in range(CHECKED_WITHIN_TURNS):
        proposals.checks.advance(turn)
    drafted = S + PREVIEW_WITHIN_NS  # So long a busy parent took.
    for now in (drafted, drafted + PREVIEW_WITHIN_NS - 1):
        turn.now = now
        previews.advance(turn)
        assert [one for one in turn.effects if isinstance(one, PlanReply)] == []
    turn.now = drafted + PREVIEW_WITHIN_NS
    previews.advance(turn)
    assert [one.ticket for one in turn.effects if isinstance(one, PlanReply)] == [5]


def test_what_people_ask_is_planned_where_others_take_all_of_each_turn() -> None:
    table, changes = cluster(Random(3), 4)
    catalog = Catalog(KINDS, [load(one).manifest() for one in ("labnode", "service", "jobs")])
    timers, turn = Timers(), Turn(2 * S)
    proposals = Proposals(table, catalog, Policies(table, catalog))
    previews = Previews(grounds(table, catalog), proposals, PlanQueue(SIDE, timers), timers)
    turn.allowance.spend(TURN_WORK_MAX)
    previews.consider(turn, Considered(5, tuple(changes)))
    for _ in range(100):
        turn.allowance = TurnAllowance(TURN_WORK_MAX)
        previews.advance(turn)
    assert turn.effects == [PlanReply(5, previewed(table, *changes))]


@pytest.mark.parametrize(
    ("jobs", "chain"),
    [("none", ["bmc.switch_off"]), (None, ["jobs.look_busy", "bmc.switch_off"])],
)
def test_a_node_that_never_has_jobs_is_planned_for_as_free(
    jobs: str | None, chain: list[str]
) -> None:
    """Though nobody has looked yet, as where a site would declare it."""
    sure = replace(OFF, requires=(*OFF.requires, Requirement("busy", ("free",))))
    catalog = Catalog(KINDS, [replace(BMC, steps=(sure,)), GATE])
    table = EntityTable(KINDS)
    attributes = {**ATTRIBUTES, **({} if jobs is None else {"jobs": jobs})}
    table.apply(Declare(LAB, attributes, "site"), 1)
    row_of(table, LAB).belief.known["power"] = Fact("on", "bmc", Method.READ, S, 0)
    told = previewed(table, SetDesired(LAB, "power", "off", "user:a"), catalog=catalog)
    assert [[link.part for link in group.chain] for group in told.groups] == [chain]
