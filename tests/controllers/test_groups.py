"""What the controller of groups writes, by how its cluster stands."""

import msgspec
import pytest

from haptera.controllers.groups import decide
from haptera.kinds.lease import LeaseState
from haptera.model.answers.views import Condition, DesiredView, EntityView, ObservedView
from haptera.model.entity import parse_entity

OWNER = "controller:groups"
RUNS = {"run": "running", "applied": "current"}


def a_view(name, observed=(), attributes=(), **desired):
    entity = parse_entity(name)
    seen = {
        key: ObservedView(value, known=True, method="read", by="look", age_ms=5)
        for key, value in dict(observed).items()
    }
    wanted = {key: DesiredView(value, OWNER) for key, value in desired.items()}
    return EntityView(
        entity=name,
        kind=entity.kind,
        name=entity.name,
        node=entity.node,
        revision=1,
        attributes=dict(attributes),
        desired=wanted,
        observed=seen,
        condition=Condition.CONVERGED,
        chain=[],
        since_ms=0,
    )


def a_node(name, power="on"):
    return a_view(f"node:{name}", {"agent": "up"}, power=power)


def a_lost_node(name, lost_ms):
    return msgspec.structs.replace(a_view(f"node:{name}", power="on"), lost_ms=lost_ms)


def a_group(**desired):
    return a_view("group:ledger", **{"command": "serve", "replicas": 1, **desired})


def a_replica(rank, node, *, observed=RUNS, command="serve", placement=1):
    name = f"replica:ledger.{rank}@{node}"
    return a_view(name, observed, run="running", command=command, placement=placement)


def a_lease(epoch, rank, node, state=LeaseState.HELD):
    name = f"lease:ledger.{epoch}@{node}"
    return a_view(name, {"state": state}, state=LeaseState.HELD, rank=rank)


def decided(*views, wall_s=0.0):
    found = decide({view.entity: view for view in views}, OWNER, wall_s)
    found.desired.pop("group:ledger", None)
    return found


def test_a_single_replica_leads_on_a_node_to_be_vacated_until_its_replacement_runs():
    going, free = a_node("n1", power="off"), a_node("n2")
    there = [going, free, a_group(epoch=1), a_replica(0, "n1"), a_lease(1, 0, "n1")]

    first = decided(*there)
    assert list(first.declare) == ["replica:ledger.0@n2"]
    assert first.desired == {
        "replica:ledger.0@n2": {"command": "serve", "run": "running", "placement": 2}
    }
    assert first.undeclare == []

    begun = a_replica(0, "n2", observed={"run": "stopped"}, placement=2)
    waits = decided(*there, begun)
    assert (waits.desired, waits.declare, waits.undeclare) == ({}, {}, [])

    runs = decided(*there, a_replica(0, "n2", placement=2))
    assert runs.undeclare == ["replica:ledger.0@n1"]
    assert runs.desired == {"lease:ledger.1@n1": {"state": LeaseState.SPENT}}


@pytest.mark.parametrize(
    ("seen", "vacated"),
    [
        ({"applied": "stale"}, True),
        ({"applied": "current"}, False),
        ({}, False),
        ({"applied": "stale", "refused": "current"}, False),
        ({"applied": "stale", "refused": "stale"}, True),
    ],
)
def test_a_node_whose_image_is_to_be_replaced_is_vacated_first(seen, vacated):
    image = a_view("system:root@n1", seen, image="v2")
    nodes, group = [a_node("n1"), a_node("n2")], a_group(leader="none")

    found = decided(*nodes, group, a_replica(0, "n1"), image)

    assert list(found.declare) == (["replica:ledger.0@n2"] if vacated else [])


@pytest.mark.parametrize(
    ("health", "vacated"),
    [
        ({"grade": "predicted", "care": "spared"}, True),
        ({"grade": "degraded", "care": "out"}, True),
        ({"grade": "failed"}, False),
    ],
)
def test_a_node_in_care_is_vacated_and_one_that_is_only_ill_is_not(health, vacated):
    nodes, group = [a_node("n1"), a_node("n2")], a_group(leader="none")

    found = decided(*nodes, group, a_replica(0, "n1"), a_view("health:n1", **health))

    assert list(found.declare) == (["replica:ledger.0@n2"] if vacated else [])


def test_what_has_nowhere_to_go_says_that_it_waits():
    nodes = [a_node(f"n{one}", power="off") for one in (1, 2)]
    there = [a_replica(0, "n1"), a_replica(1, "n2")]
    views = {one.entity: one for one in (*nodes, *there, a_group(replicas=2, leader="none"))}

    found = decide(views, OWNER, 0.0)

    # Not undeclared: its count of places goes on from here.
    assert found.undeclare == []
    assert found.desired["replica:ledger.0@n1"] == {"run": "stopped"}
    assert found.desired["group:ledger"]["says"] == (
        "0 of 2 placed for want of nodes; rank 1 waits, for only 1 may be down at once; "
        "nobody leads now"
    )


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"leader": "rank 3"}, "there is no rank 3 to lead; 2 of 2 placed; nobody leads now"),
        (
            {"leader": "plug-in", "choice": 2},
            "there is no rank 2 to lead; 2 of 2 placed; nobody leads now",
        ),
        (
            {"command": None},
            "it has no command, so nothing runs; 0 of 0 placed; nobody leads now",
        ),
    ],
)
def test_what_a_group_lacks_is_said(wanted, says):
    there = [a_node("n1"), a_node("n2"), a_replica(0, "n1"), a_replica(1, "n2")]
    group = a_group(replicas=2, **wanted)
    if wanted.get("command", "serve") is None:
        del group.desired["command"]

    found = decide({one.entity: one for one in (*there, group)}, OWNER, 0.0)

    assert found.desired["group:ledger"]["says"] == says


def test_another_command_is_written_to_one_replica_at_a_time():
    nodes = [a_node(f"n{one}") for one in (1, 2)]
    group = a_group(replicas=2, command="new", leader="none")
    old = [a_replica(0, "n1"), a_replica(1, "n2")]

    first = decided(*nodes, group, *old)
    assert first.desired == {"replica:ledger.0@n1": {"command": "new"}}
    changed = a_replica(0, "n1", command="new", observed={"run": "running", "applied": "stale"})
    assert decided(*nodes, group, changed, old[1]).desired == {}
    done = a_replica(0, "n1", command="new")
    assert decided(*nodes, group, done, old[1]).desired == {
        "replica:ledger.1@n2": {"command": "new"}
    }


def test_a_plug_in_says_who_leads_and_without_its_answer_nobody_does():
    nodes = [a_node(f"n{one}") for one in (1, 2)]
    both = [a_replica(0, "n1"), a_replica(1, "n2")]

    assert decided(*nodes, *both, a_group(replicas=2, leader="plug-in")).declare == {}
    chosen = a_group(replicas=2, leader="plug-in", choice=1)
    assert list(decided(*nodes, *both, chosen).declare) == ["lease:ledger.1@n2"]
    held = a_lease(1, 0, "n1")
    assert decided(*nodes, *both, chosen, held).desired == {
        "lease:ledger.1@n1": {"state": LeaseState.SPENT}
    }


@pytest.mark.parametrize(
    ("silent_ms", "suspects", "held"),
    [
        ([100, 200, 300], 0, True),
        ([100, 200], 0, False),
        ([100, 200, 30_000], 0, False),
        ([100], 2, True),
        ([100], 1, False),
        ([30_000], 5, False),
    ],
)
def test_where_half_of_all_nodes_fall_silent_at_once_nothing_is_placed_for_now(
    silent_ms, suspects, held
):
    lost = [a_lost_node(f"n{one}", ms) for one, ms in enumerate(silent_ms)]
    there = [*lost, *(a_node(f"n{one}") for one in range(len(lost), 6))]
    for one in range(6 - suspects, 6):
        there[one] = msgspec.structs.replace(there[one], suspect=True)
    views = [*there, a_group(leader="none"), a_replica(0, "n0", observed={})]

    found = decide({one.entity: one for one in views}, OWNER, 0.0)

    assert (list(found.declare), "held for 30 s" in found.desired["group:ledger"]["says"]) == (
        [] if held else [f"replica:ledger.0@n{len(lost)}"],
        held,
    )


def test_a_node_that_was_silent_goes_on_with_its_replica_where_that_has_no_other_place():
    lost, there = a_lost_node("n0", 40_000), a_replica(0, "n0", observed={})
    group = a_group(leader="none")

    assert not decided(lost, group, there)
    assert not decided(a_node("n0"), group, a_replica(0, "n0"))
    assert list(decided(lost, a_node("n1"), group, there).declare) == ["replica:ledger.0@n1"]


def test_a_rank_that_had_no_place_for_a_while_counts_on():
    parked = a_view(
        "replica:ledger.0@n1", {"run": "stopped"}, run="stopped", command="serve", placement=4
    )
    off, group = a_node("n1", power="off"), a_group(leader="none")

    nowhere = decided(off, group, parked)
    assert (nowhere.desired, nowhere.undeclare) == ({}, [])
    elsewhere = decided(off, a_node("n2"), group, parked)
    assert elsewhere.desired["replica:ledger.0@n2"]["placement"] == 5
    assert elsewhere.undeclare == ["replica:ledger.0@n1"]
    back = decided(a_node("n1"), group, parked)
    assert back.desired == {"replica:ledger.0@n1": {"run": "running", "placement": 5}}


def test_a_group_that_cannot_be_read_says_so_and_the_others_are_kept():
    bad = a_view("group:audit", command="serve", replicas="many")
    found = decide({one.entity: one for one in (bad, a_group(), a_node("n1"))}, OWNER, 0.0)

    assert list(found.declare) == ["replica:ledger.0@n1"]
    assert found.desired["group:audit"]["says"].startswith("it is not kept: ValueError: ")
    assert found.desired.keys() == {"group:audit", "group:ledger", "replica:ledger.0@n1"}
