"""A replica that does not come to run is tried elsewhere, so often, and then has failed."""

import asyncio

import msgspec
import pytest

from haptera.controllers.groups import decide, keep_groups
from haptera.controllers.relocation import FORGET_AFTER_MS
from haptera.model.answers.views import Condition, DesiredView
from haptera.sdk import Changes
from tests.controllers.test_groups import (
    OWNER,
    a_group,
    a_lost_node,
    a_node,
    a_replica,
    a_view,
    decided,
)

NODES = [a_node(f"n{one}") for one in (1, 2, 3, 4)]
FAILED = {"run": "failed"}
STOPPED = {"run": "stopped"}
DOES_NOT_LAST = "replica.start was repeated several times: its effect does not last; run is failed"
GIVEN_UP = "replica.start: no such command; given up after 6 attempts, for 30 min"


def group(moves=2, **desired):
    return a_group(moves=moves, leader="none", **desired)


def stuck(rank, node, *, placement=1, observed=FAILED, why=DOES_NOT_LAST):
    one = a_replica(rank, node, observed=observed, placement=placement)
    return msgspec.structs.replace(one, condition=Condition.STUCK, why=why)


def given_up(rank, node, *, placement=1):
    told = {"run": "stopped", "command": "serve", "placement": placement}
    return a_view(f"replica:ledger.{rank}@{node}", STOPPED, **told)


def running(rank, node, *, placement, for_ms=5):
    one = a_replica(rank, node, placement=placement)
    run = msgspec.structs.replace(one.observed["run"], age_ms=for_ms)
    return msgspec.structs.replace(one, observed={**one.observed, "run": run})


def says(*views):
    found = decide({view.entity: view for view in views}, OWNER, 0.0)
    return found.desired["group:ledger"]["says"]


@pytest.mark.parametrize("why", [DOES_NOT_LAST, GIVEN_UP])
@pytest.mark.parametrize("observed", [FAILED, {"run": "unready"}])
def test_it_ends_where_it_is_and_begins_on_another_node(observed, why):
    found = decided(*NODES, group(), stuck(0, "n1", observed=observed, why=why))

    assert found.desired == {
        "replica:ledger.0@n1": {"run": "stopped"},
        "replica:ledger.0@n2": {"command": "serve", "run": "running", "placement": 2},
    }
    assert found.undeclare == []


def test_until_it_was_tried_as_often_as_it_should_be_it_stays():
    found = decided(*NODES, group(), stuck(0, "n1", why="replica.start: no such command"))

    assert (found.desired, found.declare, found.undeclare) == ({}, {}, [])


def test_it_goes_to_no_node_where_it_was_in_vain():
    found = decided(*NODES, group(), given_up(0, "n1"), stuck(0, "n2", placement=2))

    assert list(found.declare) == ["replica:ledger.0@n3"]
    assert found.undeclare == []


def test_after_so_many_moves_it_has_failed_and_says_where():
    there = [given_up(0, "n1"), given_up(0, "n2", placement=2), stuck(0, "n3", placement=3)]

    found = decided(*NODES, group(), *there)

    assert (found.desired, found.declare, found.undeclare) == ({}, {}, [])
    assert "rank 0 failed on n1, n2, n3: retry it" in says(*NODES, group(), *there)


@pytest.mark.parametrize("moves", [0, None])
def test_where_none_is_allowed_it_stays(moves):
    there = [*NODES, group(moves) if moves is not None else a_group(leader="none"), stuck(0, "n1")]

    found = decided(*there)

    assert (found.desired, found.declare, found.undeclare) == ({}, {}, [])
    assert "failed" not in says(*there)


def test_where_there_is_no_other_node_it_stays_and_has_failed():
    there = [*NODES[:2], group(replicas=2), stuck(0, "n1"), running(1, "n2", placement=1)]

    found = decided(*there)

    assert (found.desired, found.declare, found.undeclare) == ({}, {}, [])
    assert "rank 0 failed on n1: retry it" in says(*there)


def test_one_moves_at_a_time_and_shares_no_fault_group_with_its_siblings():
    racks = {"n1": "r1", "n2": "r2", "n3": "r2", "n4": "r4"}
    nodes = [a_view(f"node:{one}", {"agent": "up"}, {"rack": rack}) for one, rack in racks.items()]
    there = [stuck(0, "n1"), stuck(1, "n2")]

    found = decided(*nodes, group(replicas=2, apart="rack"), *there)

    assert list(found.declare) == ["replica:ledger.0@n4"]
    assert "replica:ledger.1@n2" not in found.desired


def test_a_node_s_failure_is_no_move():
    nodes = [a_lost_node("n1", 60_000), *NODES[1:]]
    lost = decided(*nodes, group(), a_replica(0, "n1"))
    assert list(lost.declare) == ["replica:ledger.0@n2"]

    # The node is back: nothing was in vain there, and the rank may move as often as before.
    back = decided(*NODES, group(1), stuck(0, "n2", placement=2))
    assert list(back.declare) == ["replica:ledger.0@n1"]


@pytest.mark.parametrize(
    ("moves", "for_ms", "forgotten"),
    [(2, 5, False), (2, FORGET_AFTER_MS, True), (0, 5, True)],
)
def test_once_it_has_run_for_long_or_may_not_move_its_failures_are_forgotten(
    moves, for_ms, forgotten
):
    there = [given_up(0, "n1"), running(0, "n2", placement=2, for_ms=for_ms)]

    found = decided(*NODES, group(moves), *there)

    assert found.undeclare == (["replica:ledger.0@n1"] if forgotten else [])
    assert found.declare == {}


def test_with_another_command_no_node_is_barred():
    there = [given_up(0, "n1"), stuck(0, "n2", placement=2)]

    found = decided(*NODES, group(command="mended"), *there)

    assert found.desired == {"replica:ledger.0@n2": {"command": "mended"}}
    assert found.undeclare == ["replica:ledger.0@n1"]


def test_while_nothing_is_placed_nothing_is_given_up():
    lost = [a_lost_node(f"n{one}", 1_000) for one in (2, 3, 4)]

    there = [NODES[0], *lost, a_node("n5"), group(), stuck(0, "n1")]

    found = decided(*there)

    assert (found.desired, found.declare, found.undeclare) == ({}, {}, [])
    assert "failed" not in says(*there)


def test_what_a_person_wants_to_run_there_is_left_to_them():
    one = stuck(0, "n1")
    theirs = {**one.desired, "run": DesiredView("running", "user:ann")}
    there = [*NODES, group(), msgspec.structs.replace(one, desired=theirs)]

    found = decided(*there)

    assert (found.desired, found.declare, found.undeclare) == ({}, {}, [])


class AgingCluster:
    """A cluster that tells ages as of the last change, unless it is read."""

    owner = OWNER

    def __init__(self, told, read):
        self.told, self.views, self.undeclared = told, read, []

    async def watch(self, **_):
        now = {one.entity: one for one in self.told}
        yield Changes(now, (), {}, (), fresh=True, cursor="", revision=1)

    async def read(self, select):
        return {one.entity: one for one in self.views if f"{one.kind}:*" == select}

    async def write(self, _desired, *, undeclare, **_):
        self.undeclared += undeclare

    def wall_s(self):
        return 0.0


def test_how_long_it_has_run_is_read_where_something_was_given_up():
    before, now = (running(0, "n2", placement=2, for_ms=ms) for ms in (5, FORGET_AFTER_MS))
    others = [*NODES, group(), given_up(0, "n1")]
    cluster = AgingCluster([*others, before], [*others, now])

    asyncio.run(keep_groups(cluster))

    assert cluster.undeclared == ["replica:ledger.0@n1"]
