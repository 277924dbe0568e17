"""Where ranks go: those that live stay, lost ones go apart from them, moves come one by one."""

import random
from itertools import combinations

from haptera.controllers.replication import ReplicaHost, Settled, settle

DIMENSIONS = ("rack", "pdu")


def host(name, rack, pdu=""):
    groups = {"rack": frozenset(rack.split()), "pdu": frozenset(pdu.split())}
    return ReplicaHost(name, groups)


def hosts(*some):
    return {one.name: one for one in some}


SIX = hosts(
    host("n1", "r1", "p1"),
    host("n2", "r1", "p2"),
    host("n3", "r2", "p2"),
    host("n4", "r2", "p3"),
    host("n5", "r3", "p3"),
    host("n6", "r4", "p4 p5"),
)


def settled(known, now, running=(0, 1, 2), ranks=(0, 1, 2), loads=None):
    return settle(ranks, known, now, running, DIMENSIONS, loads or {})


def test_ranks_are_spread_over_nodes_that_share_nothing():
    found = settled(SIX, {}, running=())

    assert found.nodes == {0: "n1", 1: "n3", 2: "n5"}
    assert found.why[0] == "shares no rack or pdu with n3, n5"


def test_those_that_live_apart_stay_though_others_are_less_loaded():
    now = {0: "n1", 1: "n3", 2: "n5"}

    assert settled(SIX, now, loads={"n1": 9}) == Settled(now)


def test_a_lost_one_shares_nothing_with_those_that_live():
    left = {name: one for name, one in SIX.items() if name != "n1"}

    found = settled(left, {0: "n1", 1: "n3", 2: "n5"}, running=(1, 2))

    assert found.nodes == {0: "n6", 1: "n3", 2: "n5"}
    assert found.why == {0: "shares no rack or pdu with n3, n5"}


def test_what_cannot_be_kept_apart_is_said():
    two = hosts(host("a", "r1", "p1"), host("b", "r2", "p1"))

    found = settled(two, {}, running=(), ranks=(0, 1))

    assert found.shared == ("pdu",)
    assert found.why[0] == "shares pdu p1 with b: no nodes keep all apart by pdu"


def test_one_moves_once_all_run_and_no_two_at_once():
    known = hosts(*(host(name, rack) for name, rack in zip("abcdef", "111234", strict=True)))
    now = {0: "a", 1: "b", 2: "c"}

    assert settled(known, now, running=(0, 1)).nodes == now
    moved = settled(known, now).nodes
    assert len([rank for rank in now if moved[rank] != now[rank]]) == 1


def test_more_ranks_than_nodes_leave_some_without():
    found = settled(hosts(host("a", "r1")), {}, running=(), ranks=(0, 1))

    assert (found.nodes, found.unplaced) == ({0: "a"}, (1,))


def drawn(rng):
    names = [f"n{number}" for number in range(rng.randint(1, 6))]
    return hosts(
        *(
            host(name, " ".join(rng.sample("abc", rng.randint(0, 2))), rng.choice("xyz"))
            for name in names
        )
    )


def test_nobody_loses_a_node_that_may_run_it_while_another_is_without():
    forced = 0
    for seed in range(400):
        rng = random.Random(seed)
        known = drawn(rng)
        ranks = range(rng.randint(1, 4))
        now = {rank: f"n{rng.randrange(8)}" for rank in ranks if rng.random() < 0.7}
        now = {rank: name for rank, name in now.items() if list(now.values()).count(name) == 1}
        found = settle(ranks, known, now, set(now), DIMENSIONS, {})

        assert len(set(found.nodes.values())) == len(found.nodes)
        assert set(found.nodes) | set(found.unplaced) == set(ranks)
        assert len(found.nodes) == min(len(ranks), len(known))
        lost = [rank for rank in ranks if now.get(rank) not in known]
        if lost:
            forced += 1
            stayed = {rank: name for rank, name in now.items() if name in known}
            assert stayed.items() <= found.nodes.items()
    assert forced > 100


def test_moves_end():
    """From wherever it begins, one move after the other, it comes to rest, apart if that can be."""
    for seed in range(200):
        rng = random.Random(seed)
        known = drawn(rng)
        ranks = range(min(3, len(known)))
        now = dict(zip(ranks, rng.sample(sorted(known), len(ranks)), strict=True))
        for _ in range(len(ranks) + 1):
            found = settle(ranks, known, now, set(ranks), DIMENSIONS, {})
            if found.nodes == now:
                break
            now = dict(found.nodes)
        assert found.nodes == now
        if not found.shared:
            pairs = combinations([known[name] for name in now.values()], 2)
            assert not any(one.shares(two, DIMENSIONS) for one, two in pairs)
