"""No more replicas are down at once than their group lets haptera take down."""

import random

from haptera.controllers.handover import Handover, Incumbent, hand_over


def incumbent(rank, node, **terms):
    return Incumbent(f"{rank}@{node}", rank, node, **terms)


def runs(rank, node, **terms):
    return incumbent(rank, node, running=True, steady=True, **terms)


def test_what_leaves_goes_on_until_its_replacement_runs():
    old = runs(0, "a", must_leave=True)

    assert hand_over({0: "b"}, [0], [old], 1) == Handover()
    assert hand_over({0: "b"}, [0], [old, incumbent(0, "b")], 1) == Handover()
    assert hand_over({0: "b"}, [0], [old, runs(0, "b")], 1) == Handover(("0@a",))


def test_what_has_nowhere_to_go_ends_one_at_a_time():
    both = [runs(0, "a", must_leave=True), runs(1, "b", must_leave=True)]

    assert hand_over({}, [0, 1], both, 1) == Handover(("0@a",), waiting=(1,))
    assert hand_over({}, [0, 1], [both[1]], 1) == Handover(waiting=(1,))
    assert hand_over({}, [0, 1], both, 0) == Handover(waiting=(0, 1))


def test_a_replacement_that_does_not_come_to_run_holds_up_a_drain_no_longer_than_the_budget():
    old, stuck = runs(0, "a", must_leave=True), incumbent(0, "b", stuck=True)

    assert hand_over({0: "b"}, [0], [old, stuck], 1) == Handover(("0@a",))
    assert hand_over({0: "b"}, [0], [old, stuck], 0) == Handover(waiting=(0,))
    stays = runs(0, "a")  # moved to keep siblings apart: nobody waits for its node
    assert hand_over({0: "b"}, [0], [stays, stuck], 1) == Handover()


def test_what_is_gone_and_what_nobody_wants_ends_at_once():
    there = [incumbent(0, "a", gone=True), runs(7, "b")]

    assert hand_over({0: "c"}, [0], there, 0) == Handover(("0@a", "7@b"))


def test_what_a_silent_node_has_is_left_to_it_where_nothing_can_run_in_its_place():
    there = [incumbent(0, "a", gone=True, silent=True)]

    assert hand_over({}, [0], there, 1) == Handover()
    assert hand_over({0: "b"}, [0], there, 1) == Handover(("0@a",))
    assert hand_over({}, [], there, 1) == Handover(("0@a",))


def test_another_command_reaches_one_at_a_time_and_the_leader_last():
    there = [runs(0, "a", outdated=True, leads=True), runs(1, "b", outdated=True)]
    target = {0: "a", 1: "b"}

    assert hand_over(target, [0, 1], there, 1) == Handover(changing=("1@b",), waiting=(0,))
    begun = [there[0], incumbent(1, "b", running=True)]
    assert hand_over(target, [0, 1], begun, 1) == Handover(waiting=(0,))
    done = [there[0], runs(1, "b")]
    assert hand_over(target, [0, 1], done, 1) == Handover(changing=("0@a",))


def test_a_command_that_crashes_is_replaced_whatever_the_budget():
    there = [incumbent(0, "a", outdated=True, stuck=True)]

    assert hand_over({0: "a"}, [0], there, 0) == Handover(changing=("0@a",))


def drawn(rng):
    ranks = range(rng.randint(1, 5))
    target = {rank: f"t{rank}" for rank in ranks if rng.random() < 0.8}
    there = []
    for rank in ranks:
        for node in rng.sample([f"t{rank}", f"o{rank}"], rng.randint(0, 2)):
            running = rng.random() < 0.7
            there.append(
                incumbent(
                    rank,
                    node,
                    running=running,
                    steady=running and rng.random() < 0.8,
                    gone=not running and rng.random() < 0.5,
                    stuck=not running and rng.random() < 0.5,
                    outdated=node.startswith("t") and rng.random() < 0.5,
                    must_leave=node.startswith("o") and rng.random() < 0.5,
                )
            )
    return ranks, target, there


def test_in_whatever_state_it_takes_down_no_more_than_the_budget():
    took = 0
    for seed in range(1_000):
        rng = random.Random(seed)
        ranks, target, there = drawn(rng)
        budget = rng.randint(0, 2)
        found = hand_over(target, ranks, there, budget)

        touched = {*found.ending, *found.changing}
        before = {one.rank for one in there if one.steady}
        after = {
            one.rank
            for one in there
            if one.entity not in touched and (one.steady or (one.running and before))
        }
        disturbed = {rank for rank in before if rank not in after}
        down_before = len(ranks) - len(before)
        took += len(disturbed)
        assert not disturbed or down_before + len(disturbed) <= budget
        assert len(touched) == len(found.ending) + len(found.changing)
    assert took > 100
