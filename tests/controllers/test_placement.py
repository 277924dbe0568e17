"""Replicas share no fault group where any assignment avoids it: held to all assignments."""

import random
from itertools import combinations, permutations

from haptera.controllers.placement import Placement, Spot, place

DIMENSIONS = ("rack", "pdu", "switch")


def a_site(name, load=0, **groups):
    return Spot(name, {key: frozenset(value.split()) for key, value in groups.items()}, load)


def shares(one, two, dimensions):
    return any(
        one.groups.get(key, frozenset()) & two.groups.get(key, frozenset()) for key in dimensions
    )


def apart(sites, dimensions):
    return not any(shares(one, two, dimensions) for one, two in combinations(sites, 2))


def drawn(rng):
    """Nodes in overlapping groups, as few as make every second problem a tight one."""
    count = rng.randint(2, 7)
    return [
        Spot(
            f"n{number}",
            {
                key: frozenset(rng.sample("abcd", rng.choice((0, 1, 1, 1, 2))))
                for key in DIMENSIONS[: rng.randint(1, 3)]
            },
            rng.randint(0, 3),
        )
        for number in range(count)
    ]


def by_brute_force(count, sites, stays):
    """The fewest given up dimensions, then the fewest moves, then the least load."""
    for kept in range(len(DIMENSIONS), -1, -1):
        fitting = [
            chosen
            for chosen in combinations(sites, min(count, len(sites)))
            if apart(chosen, DIMENSIONS[:kept])
        ]
        if fitting:
            costs = [
                (
                    len(set(stays.values()) - {one.name for one in chosen}),
                    sum(one.load for one in chosen if one.name not in stays.values()),
                )
                for chosen in fitting
            ]
            return len(DIMENSIONS) - kept, min(costs)
    raise AssertionError


def test_it_is_as_good_as_any_assignment():
    greedy_fails = 0
    for number in range(500):
        rng = random.Random(number)
        sites = drawn(rng)
        count = rng.randint(1, min(4, len(sites)))
        stays = {}
        if rng.random() < 0.5:
            names = [one.name for one in rng.sample(sites, rng.randint(0, count - 1))]
            stays = dict(enumerate(names))
        found = place(range(count), sites, stays, DIMENSIONS)

        given_up, (moves, load) = by_brute_force(count, sites, stays)
        by_name = {one.name: one for one in sites}
        chosen = [by_name[name] for name in found.nodes.values()]
        assert len({one.name for one in chosen}) == count == len(found.nodes)
        assert apart(chosen, DIMENSIONS[: len(DIMENSIONS) - len(found.shared)])
        assert (len(found.shared), len(found.moved)) == (given_up, moves)
        new = [one for one in chosen if one.name not in stays.values()]
        assert sum(one.load for one in new) == load
        assert found.proven
        greedy_fails += given_up == 0 and not apart(greedy(count, sites), DIMENSIONS)
    assert greedy_fails > 0, "these problems need no more than greed"


def greedy(count, sites):
    """The least loaded first, apart from those before where there is one: what falls short."""
    chosen = []
    for _ in range(count):
        left = [
            one for one in sorted(sites, key=lambda one: (one.load, one.name)) if one not in chosen
        ]
        fits = [one for one in left if all(not shares(one, two, DIMENSIONS) for two in chosen)]
        chosen.append((fits or left)[0])
    return chosen


def test_overlapping_groups_are_seen():
    sites = [a_site("a", rack="x"), a_site("b", rack="x y"), a_site("c", rack="y")]

    assert place([0, 1], sites, {}, ["rack"]) == Placement({0: "a", 1: "c"})


def test_what_cannot_be_kept_apart_is_said():
    sites = [a_site("a", rack="x", pdu="1"), a_site("b", rack="y", pdu="1")]

    assert place([0, 1], sites, {}, ["rack", "pdu"]) == Placement({0: "a", 1: "b"}, shared=("pdu",))


def test_who_lives_stays_and_a_lost_one_shares_no_group_with_it():
    sites = [a_site("a", rack="x"), a_site("b", rack="x"), a_site("c", rack="y", load=9)]

    assert place([0, 1], sites, {0: "b"}, ["rack"]) == Placement({0: "b", 1: "c"})


def test_more_replicas_than_nodes_leave_some_without():
    assert place([0, 1], [a_site("a")], {}, ["rack"]) == Placement({0: "a"}, unplaced=(1,))


def test_the_order_of_nodes_does_not_matter():
    sites = [a_site("a", rack="x"), a_site("b", rack="y"), a_site("c", rack="y")]

    assert len({str(place([0, 1], one, {}, ["rack"])) for one in permutations(sites)}) == 1
