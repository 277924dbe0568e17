"""Profiles of nodes below a cap: whatever is measured, hot nodes are not raised, and caps hold."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.health.capping import (
    CALM_S,
    RAISED_SHARE,
    SHARES,
    CapDecision,
    CappedNode,
    PowerCap,
    Restraint,
    decide_cap,
    drawn_watts,
)

NONE, SOME, MOST = Restraint
IDLE = CappedNode("idle", 200.0)
BUSY = CappedNode("busy", 400.0, busy=True)
LEADS = CappedNode("leads", 300.0, leads=True)


def lowered(*nodes: CappedNode, watts: int) -> dict[str, Restraint]:
    return dict(decide_cap(nodes, PowerCap(watts), calm_s=CALM_S).restraints)


def test_who_runs_nothing_goes_first_and_who_leads_last() -> None:
    assert lowered(IDLE, BUSY, LEADS, watts=900) == {}
    assert lowered(IDLE, BUSY, LEADS, watts=880) == {"idle": SOME}
    assert lowered(IDLE, BUSY, LEADS, watts=840) == {"idle": MOST}
    assert lowered(IDLE, BUSY, LEADS, watts=800) == {"idle": MOST, "busy": SOME}
    assert lowered(IDLE, BUSY, LEADS, watts=700) == {"idle": MOST, "busy": MOST, "leads": SOME}
    assert lowered(IDLE, BUSY, LEADS, watts=1) == {"idle": MOST, "busy": MOST, "leads": MOST}


def test_it_says_what_is_drawn() -> None:
    assert decide_cap([BUSY], PowerCap(watts=300), calm_s=0) == CapDecision(
        {"busy": MOST}, "400 W are drawn of 300 W"
    )


def test_what_was_lowered_and_is_not_in_force_yet_is_not_lowered_again_for_it() -> None:
    assert lowered(BUSY.to(SOME), watts=350) == {}
    assert lowered(BUSY.to(SOME), watts=330) == {"busy": MOST}


def test_a_node_that_is_not_measured_counts_as_the_largest_and_all_together_as_unknown() -> None:
    silent = CappedNode("silent")
    assert drawn_watts([IDLE, BUSY, silent]) == 1_000
    assert lowered(silent, watts=1) == {}
    assert lowered(IDLE, BUSY, silent, watts=999) == {"idle": SOME}


@pytest.mark.parametrize("changes", [{"free": False}, {"in_force": None}])
def test_who_is_a_persons_or_cannot_be_changed_counts_and_stays(changes) -> None:
    assert lowered(replace(IDLE, **changes), BUSY, watts=590) == {"busy": SOME}


def held(node: CappedNode) -> CappedNode:
    """It was lowered all the way, which is in force."""
    return replace(node, restraint=MOST, in_force=MOST, ours=True)


def test_there_is_room_again_and_the_first_to_be_raised_leads() -> None:
    nodes = [held(IDLE), held(BUSY), held(LEADS)]
    wide = PowerCap(watts=2_000)
    assert decide_cap(nodes, wide, calm_s=CALM_S - 1) == CapDecision({})
    raised = {"leads": SOME, "busy": SOME, "idle": SOME}
    assert decide_cap(nodes, wide, calm_s=CALM_S).restraints == raised
    # 900 W are drawn, and 64 W are more for the one that leads.
    narrow = PowerCap(watts=round(970 / RAISED_SHARE))
    assert decide_cap(nodes, narrow, calm_s=CALM_S).restraints == {"leads": SOME}


def test_what_is_hot_by_a_rule_or_by_its_inlet_is_not_raised() -> None:
    cap = PowerCap(2_000, inlet_celsius=35)
    for inlet, hot, raised in ((20, False, True), (20, True, False), (33, False, False)):
        node = replace(held(BUSY), inlet_celsius=float(inlet), hot=hot)
        decision = decide_cap([node], cap, calm_s=CALM_S)
        assert bool(decision.restraints) is raised
    assert decide_cap([held(BUSY)], cap, calm_s=CALM_S).restraints == {}, "it is not read"


def test_what_a_person_has_lowered_is_not_raised() -> None:
    theirs = replace(held(BUSY), ours=False)
    assert decide_cap([theirs], PowerCap(2_000), calm_s=CALM_S) == CapDecision({})


def test_a_hot_inlet_lowers_its_node_by_one_step_at_a_time() -> None:
    cap = PowerCap(inlet_celsius=35)
    node = replace(BUSY, inlet_celsius=35.0)
    first = decide_cap([node, IDLE], cap, calm_s=CALM_S)
    assert first == CapDecision({"busy": SOME}, "1 inlets have 35 °C or more")
    assert decide_cap([node.to(SOME)], cap, calm_s=CALM_S).restraints == {}
    in_force = replace(node, restraint=SOME, in_force=SOME)
    assert decide_cap([in_force], cap, calm_s=CALM_S).restraints == {"busy": MOST}


RESTRAINTS = st.sampled_from(Restraint)


@st.composite
def nodes_below(draw: st.DrawFn) -> CappedNode:
    """A node whose profile is mostly in force, and mostly to be changed."""
    restraint = draw(RESTRAINTS)
    return CappedNode(
        "n",
        draw(st.none() | st.floats(50, 800)),
        draw(st.none() | st.floats(15, 45)),
        restraint,
        draw(st.sampled_from([restraint, restraint, *Restraint, None])),
        free=draw(st.integers(0, 3)) > 0,
        ours=draw(st.integers(0, 3)) > 0,
        leads=draw(st.booleans()),
        busy=draw(st.booleans()),
        hot=draw(st.booleans()),
    )


@st.composite
def fleets(draw: st.DrawFn) -> tuple[list[CappedNode], PowerCap, float]:
    """Some nodes, with a cap near to what they draw."""
    some = draw(st.lists(nodes_below(), min_size=1, max_size=8))
    nodes = [replace(one, name=f"n{number}") for number, one in enumerate(some)]
    near = max(1, round((drawn_watts(nodes) or 1_000) * draw(st.floats(0.5, 2.0))))
    inlet = draw(st.none() | st.integers(25, 40))
    watts = near if inlet is None else draw(st.sampled_from([near, None]))
    return nodes, PowerCap(watts, inlet), draw(st.sampled_from([0.0, CALM_S, CALM_S]))


def moves(node: CappedNode) -> bool:
    return node.free and node.in_force is not None


def first_that_suffices(nodes: list[CappedNode], watts: int) -> dict[str, Restraint]:
    """The plainer model: all steps there are, in order, and the first so many that suffice."""
    sorts = [*product((False, True), repeat=2)]
    steps = [
        (one.name, to)
        for sort in sorts
        for to in (SOME, MOST)
        for one in sorted(nodes, key=lambda one: (-(one.watts or 0), one.name))
        if (one.leads, one.busy) == sort and moves(one) and one.restraint < to
    ]
    unread = drawn_watts(nodes) or 0
    unread -= sum(one.expected_watts or 0 for one in nodes)
    for count in range(len(steps) + 1):
        there = dict(steps[:count])
        drawn = sum(
            (one.watts or 0) * SHARES[there.get(one.name, one.restraint)] / SHARES[one.in_force]
            if one.in_force is not None
            else one.watts or 0
            for one in nodes
        )
        if drawn + unread <= watts + 1e-6:
            break
    return there


@given(fleets())
def test_caps_hold_as_the_plainer_model_has_it_and_nothing_hot_is_raised(fleet) -> None:
    nodes, cap, calm_s = fleet
    by_name = {one.name: one for one in nodes}
    decision = decide_cap(nodes, cap, calm_s=calm_s)
    after = [one.to(decision.restraints.get(one.name, one.restraint)) for one in nodes]
    up = [one for one in after if one.restraint < by_name[one.name].restraint]
    down = [one for one in after if one.restraint > by_name[one.name].restraint]
    assert all(map(moves, (*up, *down)))
    assert not (up and down), "no node is raised in a round that lowers another"
    assert all(one.ours and not one.hot for one in up)
    if cap.inlet_celsius is not None:
        assert all((one.inlet_celsius or 99) < cap.inlet_celsius for one in up)
    if up:
        assert calm_s >= CALM_S
        assert cap.watts is None or (drawn_watts(after) or 0) <= RAISED_SHARE * cap.watts + 1e-6
    drawn = drawn_watts(nodes)
    if cap.inlet_celsius is None and cap.watts is not None and drawn is not None:
        expected = first_that_suffices(nodes, cap.watts) if drawn > cap.watts else {}
        assert {one.name: one.restraint for one in down} == expected
