"""A trial beside a group's replicas: placed for itself, led by it only where that is wanted."""

import msgspec
import pytest

from haptera.kinds.group import check_whole
from haptera.kinds.lease import LeaseState
from haptera.model.answers.views import DesiredView
from haptera.model.errors import HapteraError
from tests.controllers.test_groups import (
    OWNER,
    RUNS,
    a_group,
    a_lease,
    a_node,
    a_replica,
    a_view,
    decided,
)

STOPPED = {"run": "stopped"}
NODES = [a_node(f"n{one}") for one in (1, 2, 3)]
NOW = 1_800_000_000
OVER = {"run": DesiredView("stopped", OWNER)}
TRIAL = {"trial": "serve-b", "replicas": 2, "epoch": 1}


def a_trial(observed=RUNS):
    told = {"command": "serve-b", "voice": "trial", "placement": 1}
    return a_view("replica:ledger.64@n3", observed, run="running", **told)


def a_spent_lease(epoch, rank, node):
    seen = {"state": LeaseState.SPENT}
    return a_view(f"lease:ledger.{epoch}@{node}", seen, state=LeaseState.SPENT, rank=rank)


def own(*, observed=RUNS):
    return [a_replica(0, "n1", observed=observed), a_replica(1, "n2", observed=observed)]


def granted(found):
    """The rank to which the next epoch is granted."""
    ranks = [one["rank"] for one in found.desired.values() if "rank" in one]
    return ranks[0] if ranks else None


def is_taken_back(found, name="lease:ledger.1@n1"):
    return found.desired.get(name) == {"state": LeaseState.SPENT}


def test_a_trial_is_placed_beside_the_others_and_told_that_it_is_one():
    tried = a_group(**TRIAL, trials=1, compare="by order")

    found = decided(*NODES, tried, *own(), a_lease(1, 0, "n1"))

    assert found.desired == {
        "replica:ledger.64@n3": {
            "command": "serve-b",
            "voice": "trial",
            "compare": "by order",
            "run": "running",
            "placement": 1,
        }
    }


@pytest.mark.parametrize("observed", [RUNS, STOPPED])
def test_a_trial_never_contends_for_the_lead(observed):
    found = decided(*NODES, a_group(**TRIAL), *own(observed=observed), a_trial())

    assert granted(found) == (0 if observed is RUNS else None)


@pytest.mark.parametrize("leader", ["lowest", "first", "rank 1"])
def test_the_lead_goes_to_the_version_in_force_and_back(leader):
    there = [*NODES, *own(), a_trial()]
    promoted = a_group(**TRIAL, leader=leader, version="trial")
    leads = 1 if leader == "rank 1" else 0
    node = f"n{leads + 1}"

    held = a_lease(1, leads, node)
    assert is_taken_back(decided(*there, promoted, held), f"lease:ledger.1@{node}")
    spent = a_spent_lease(1, leads, node)
    assert granted(decided(*there, promoted, spent)) == 64

    undone = a_group(**TRIAL | {"epoch": 2}, leader=leader)
    leading = a_lease(2, 64, "n3")
    assert is_taken_back(decided(*there, undone, leading), "lease:ledger.2@n3")
    spent = a_spent_lease(2, 64, "n3")
    assert granted(decided(*there, undone, spent)) == leads


def test_where_no_replica_of_a_promoted_trial_runs_the_group_s_own_lead():
    promoted, ended = a_group(**TRIAL, version="trial"), a_trial(observed=STOPPED)

    found = decided(*NODES, *own(), ended, promoted)

    assert granted(found) == 0


def test_a_trial_that_was_undone_goes_on_leading_until_one_of_the_others_runs():
    undone, held = a_group(**TRIAL), a_lease(1, 64, "n3")

    waits = decided(*NODES, *own(observed=STOPPED), a_trial(), undone, held)
    runs = decided(*NODES, *own(), a_trial(), undone, held)

    assert not is_taken_back(waits, "lease:ledger.1@n3")
    assert is_taken_back(runs, "lease:ledger.1@n3")


def test_a_trial_that_ends_or_fails_takes_neither_room_nor_budget_from_the_group():
    fails = a_trial(observed={"run": "failed"})
    changed = a_group(**TRIAL | {"command": "serve-2"})

    found = decided(*NODES, changed, *own(), fails, a_lease(1, 0, "n1"))

    # One of the own may be down at once, and the trial is none of them.
    assert found.desired == {"replica:ledger.1@n2": {"command": "serve-2"}}


def test_a_trial_that_is_not_wanted_any_more_ends():
    found = decided(*NODES, a_group(replicas=2, epoch=1), *own(), a_trial(), a_lease(1, 0, "n1"))

    # Its count of places goes on from here, where there is another trial.
    assert found.desired == {"replica:ledger.64@n3": {"run": "stopped"}}


def test_a_group_without_a_leader_has_no_trial():
    with pytest.raises(HapteraError, match="it has no leader"):
        check_whole({"command": "serve", "trial": "serve-b", "leader": "none"})


def test_the_group_s_own_end_once_their_time_beside_a_leading_trial_is_over():
    there = [*NODES, *own(), a_trial(), a_lease(1, 64, "n3")]
    promoted = a_group(**TRIAL, version="trial", own_until=NOW)

    before, after = (decided(*there, promoted, wall_s=at) for at in (NOW - 0.5, NOW))

    assert before.desired == {}
    ended = {"replica:ledger.0@n1": {"run": "stopped"}, "replica:ledger.1@n2": {"run": "stopped"}}
    assert after.desired == ended


@pytest.mark.parametrize("leads", [[], [a_lease(1, 0, "n1")]])
def test_the_group_s_own_do_not_end_before_a_trial_leads(leads):
    promoted = a_group(**TRIAL, version="trial", own_until=NOW)

    found = decided(*NODES, *own(), a_trial(), *leads, promoted, wall_s=NOW + 60)

    assert not {"replica:ledger.0@n1", "replica:ledger.1@n2"} & found.desired.keys()


def test_the_group_s_own_come_back_where_no_trial_leads_any_more():
    promoted = a_group(**TRIAL, version="trial", own_until=NOW)
    there = [*NODES, promoted, *own(observed=STOPPED), a_trial(observed=STOPPED)]
    ended = [msgspec.structs.replace(one, desired={**one.desired, **OVER}) for one in there[4:6]]

    found = decided(*there[:4], *ended, a_spent_lease(1, 64, "n3"), wall_s=NOW + 60)

    assert [found.desired[f"replica:ledger.{n}@n{n + 1}"]["run"] for n in (0, 1)] == ["running"] * 2


def test_a_trial_that_leads_ends_once_its_lease_was_taken_back():
    there, aborted = [*NODES, a_trial()], a_group(replicas=2, epoch=1)
    held, spent = a_lease(1, 64, "n3"), a_spent_lease(1, 64, "n3")

    waits = decided(*there, *own(observed=STOPPED), aborted, held)
    runs = decided(*there, *own(), aborted, held)
    over = decided(*there, *own(), aborted, spent)

    assert waits.desired == {}
    assert runs.desired == {"lease:ledger.1@n3": {"state": LeaseState.SPENT}}
    assert over.desired["replica:ledger.64@n3"] == {"run": "stopped"}
    assert granted(over) == 0


def test_a_trial_that_leads_ends_with_its_group():
    aborted = a_group(replicas=0, epoch=1)

    found = decided(*NODES, a_trial(), aborted, a_lease(1, 64, "n3"))

    assert found.desired["replica:ledger.64@n3"] == {"run": "stopped"}


def test_a_trial_that_is_not_there_cannot_lead():
    with pytest.raises(HapteraError, match="it has no trial, so none can lead"):
        check_whole({"command": "serve", "version": "trial"})


def test_the_replicas_of_a_trial_need_not_be_apart():
    nodes = [
        a_view(f"node:{one}", {"agent": "up"}, {"rack": "r1"}, power="on") for one in ("a", "b")
    ]
    wide = a_group(trial="serve-b", trials=2, apart="rack", epoch=1)

    found = decided(*nodes, wide, a_replica(0, "a"), a_lease(1, 0, "a"))

    placed = {"placed": "is on the least loaded node that may run it"}
    assert found.declare == {"replica:ledger.64@b": placed, "replica:ledger.65@a": placed}
