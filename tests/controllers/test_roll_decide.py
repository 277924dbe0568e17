"""What a roll does next, held to a cluster that breaks, hides and comes back, by seed."""

import random
from dataclasses import dataclass, replace

import pytest

from haptera.controllers.roll.decide import (
    RollMember,
    RollMoves,
    RollOrder,
    is_done,
    next_moves,
    taken_back,
    waits_for,
)
from haptera.kinds.roll import OnFailure, RollWish, unavailable_max

ORDER = RollOrder("b", 1, "100%", OnFailure.GIVE_BACK, RollWish.RUN)


def old(name, works=True, ready=True, **more):
    return RollMember(name, new=False, works=works, ready=ready, **more)


def new(name, works=True, **more):
    return RollMember(name, new=True, works=works, ready=True, **more)


def olds(*names):
    return [old(name) for name in names]


def test_nothing_is_taken_until_all_that_are_there_have_the_image_ready():
    there = [old("n1"), old("n2", ready=False), old("n3")]
    assert next_moves(ORDER, there) == RollMoves()
    assert waits_for(ORDER, there) == "n2 to have the image ready"
    gone = [old("n1"), old("n2", None, ready=False, vanished=True), old("n3")]
    assert next_moves(ORDER, gone) == RollMoves(take=("n1",))


def test_the_canary_comes_first_then_each_that_is_proven_lets_one_more_be_under_way():
    left = olds("n3", "n4", "n5", "n6", "n7", "n8")
    assert next_moves(ORDER, [*olds("n1", "n2"), *left]).take == ("n1",)
    assert next_moves(ORDER, [new("n1", None), *olds("n2"), *left]).take == ()
    assert next_moves(ORDER, [new("n1"), *olds("n2"), *left]).take == ("n2",)
    assert next_moves(ORDER, [new("n1"), new("n2"), *left]).take == ("n3", "n4")
    four = [new("n1"), new("n2"), new("n3"), new("n4"), *left[2:]]
    assert next_moves(ORDER, four).take == ("n5", "n6", "n7", "n8")
    assert next_moves(replace(ORDER, unavailable="3"), four).take == ("n5", "n6", "n7")


def test_of_several_canaries_no_more_are_taken_than_are_left_of_them():
    order = replace(ORDER, canary=3)
    left = olds("n2", "n3", "n4", "n5", "n6")
    assert next_moves(order, [new("n1"), *left]).take == ("n2", "n3")


def test_free_systems_come_before_busy_ones_and_broken_ones_before_both():
    order = replace(ORDER, canary=3)
    members = [old("n1", free=False), old("n2"), old("n3", works=False), old("n4", works=None)]
    assert next_moves(order, members).take == ("n3", "n2", "n1")


def test_a_fix_reaches_broken_systems_though_more_are_away_than_may_be():
    order = replace(ORDER, canary=4, unavailable="1")
    members = [old("n1", works=False), old("n2", works=False), old("n3")]
    assert next_moves(order, members) == RollMoves(take=("n1", "n2"))


def test_an_unknown_is_not_disturbed_and_counts_as_away():
    order = replace(ORDER, unavailable="1")
    members = [old("n1", works=None), old("n2"), old("n3")]
    assert next_moves(order, members) == RollMoves()
    assert waits_for(order, members) == "n1, which are away: 1 may be"
    vanished = [replace(members[0], vanished=True), *members[1:]]
    assert next_moves(order, vanished) == RollMoves(take=("n2",))


@pytest.mark.parametrize("how", [{"refused": "it ended"}, {"vanished": True}])
def test_what_fails_on_the_new_image_is_given_back_and_nothing_more_is_taken(how):
    members = [new("n1", None, **how), *olds("n2", "n3")]
    why = f"n1: {how.get('refused', 'it vanished')}"
    assert next_moves(ORDER, members) == RollMoves(give_back=("n1",), halt=why)
    kept = replace(ORDER, on_failure=OnFailure.KEEP)
    assert next_moves(kept, members) == RollMoves(halt=why)
    halted = replace(ORDER, halted=why)
    assert next_moves(halted, olds("n1", "n2", "n3")) == RollMoves(halt=why)


def test_a_deadline_halts_and_a_pause_takes_nothing():
    late, paused = replace(ORDER, is_late=True), replace(ORDER, wish=RollWish.PAUSE)
    assert next_moves(late, olds("n1")) == RollMoves(halt="its deadline has passed")
    assert next_moves(paused, olds("n1")) == RollMoves()


def test_at_its_deadline_a_roll_gives_back_what_still_waits_for_jobs():
    why = "its deadline has passed"
    late = replace(ORDER, is_late=True)
    waits = new("n2", None, free=False, waits=True)
    members = [new("n1", free=False), waits, new("n3", None), old("n4")]
    assert next_moves(late, members) == RollMoves(give_back=("n2",), halt=why)
    assert next_moves(replace(late, halted=why), members).give_back == ("n2",)
    assert next_moves(ORDER, members).give_back == ()


@pytest.mark.parametrize("how", [OnFailure.GIVE_BACK, OnFailure.KEEP])
def test_a_roll_that_halts_leaves_nobody_that_would_still_go_over_to_the_bad_image(how):
    order = replace(ORDER, on_failure=how)
    waits = new("n2", None, waits=True)
    members = [new("n1", None, refused="it ended"), waits, new("n3", None), new("n4"), old("n5")]
    failed = () if how is OnFailure.KEEP else ("n1",)
    halt = RollMoves(give_back=(*failed, "n2"), halt="n1: it ended")
    assert next_moves(order, members) == halt
    halted = replace(order, halted="n1: it ended")
    assert next_moves(halted, [old("n1"), *members[1:]]).give_back == ("n2",)
    resumed = [old("n1"), old("n2"), new("n3"), new("n4"), old("n5")]
    assert next_moves(order, resumed).take == ("n1", "n2")


def test_what_is_waited_for_is_told_in_the_words_of_the_first_that_waits():
    full = "system.flip waits: the budget of node n1 allows 3 an hour, next 08:12 UTC"
    members = [new("n1", None, waits=True, why=full), old("n2")]
    assert waits_for(ORDER, members) == f"n1: {full}"
    busy = replace(members[0], free=False, why="it is drained: job 1_27 runs")
    assert waits_for(ORDER, [busy]) == "the jobs on n1: it is drained: job 1_27 runs"
    assert waits_for(ORDER, [replace(members[0], why="")]) == "n1"


def test_what_does_not_run_the_new_image_is_taken_back_with_its_roll():
    members = [new("n1"), new("n2", None, waits=True), new("n3", refused="it ended"), old("n4")]
    assert taken_back(members) == ("n2", "n3", "n4")


def test_an_abort_gives_back_what_is_not_proven_and_an_undo_all_of_it_within_the_budget():
    members = [new("n1"), new("n2", None), new("n3"), old("n4")]
    assert next_moves(replace(ORDER, wish=RollWish.ABORT), members) == RollMoves(give_back=("n2",))
    undo = replace(ORDER, wish=RollWish.UNDO, unavailable="1", is_finished=True)
    assert next_moves(undo, members) == RollMoves(give_back=("n2", "n1"))
    assert next_moves(undo, [old("n1", None), *members[2:]]) == RollMoves()


def test_a_roll_that_is_done_says_so_and_looks_after_nothing_any_more():
    members = [new("n1"), new("n2")]
    assert next_moves(ORDER, members) == RollMoves(finish=True)
    finished = replace(ORDER, is_finished=True)
    assert next_moves(finished, [new("n1", refused="it ended")]) == RollMoves()


@pytest.mark.parametrize(
    ("text", "systems", "most"),
    [("10%", 4, 1), ("10%", 19, 1), ("10%", 20, 2), ("50%", 3, 1), ("100%", 7, 7), ("3", 2, 3)],
)
def test_a_share_is_rounded_to_the_safe_side_but_not_to_nothing(text, systems, most):
    assert unavailable_max(text, systems) == most


@dataclass
class Node:
    """A plain model of one node: what is desired, what runs, and what will come of a flip."""

    name: str
    good: bool  # whether the new image is well here
    desired: str = "a"
    runs: str | None = "a"
    jobs: int = 0
    hidden: int = 0  # for so many ticks nothing is known of it
    silent: int = 0
    refused: str | None = None
    flipping: bool = False

    def member(self):
        is_new, known = self.desired == "b", self.hidden == 0
        works = None if not known else self.runs == self.desired and not self.flipping
        if known and is_new and not works:
            works = None if self.runs else False
        return RollMember(
            self.name,
            new=is_new,
            works=works,
            ready=known,
            free=known and not self.jobs,
            refused="it ended" if known and is_new and self.refused == "b" else None,
            vanished=self.silent >= 12,
        )

    def tick(self, rng):
        self.silent = self.silent + 1 if self.hidden else 0
        self.hidden, self.jobs = max(0, self.hidden - 1), max(0, self.jobs - 1)
        if self.flipping:
            self.flipping = False
            if self.desired == "b" and not self.good:
                self.refused = "b"  # it went back by itself
            else:
                self.runs = self.desired
        elif self.runs != self.desired and not self.jobs and self.refused != self.desired:
            self.flipping = rng.random() < 0.7

    @property
    def away(self):
        return self.flipping or self.runs is None


@pytest.mark.parametrize("seed", range(150))
def test_whatever_happens_budgets_hold_and_a_bad_image_stops_at_the_canaries(seed):
    rng = random.Random(seed)
    count = rng.randint(2, 24)
    bad = seed % 3 == 0
    nodes = [Node(f"n{at:02}", good=not bad) for at in range(count)]
    for one in nodes:
        one.jobs = rng.choice((0, 0, 0, 5, 30))
        one.runs = rng.choice(("a",) * 9 + (None,))
    broken = {one.name for one in nodes if one.runs is None}
    order = replace(
        ORDER, canary=rng.randint(1, 3), unavailable=rng.choice(("1", "2", "10%", "34%"))
    )
    reached = set()
    for tick in range(400 if bad else 4_000):
        if tick < 300 and rng.random() < 0.05:
            seen = [one for one in nodes if not one.silent and not one.hidden]
            rng.choice(seen or nodes[:1]).hidden = rng.choice((1, 3, 8))
        members = [one.member() for one in nodes]
        moves = next_moves(order, members)
        for one in nodes:
            if one.name in (*moves.take, *moves.give_back):
                one.desired = "b" if one.name in moves.take else "a"
        reached |= {*moves.take}
        assert not bad or len(reached) <= order.canary
        order = replace(order, halted=moves.halt)
        for one in nodes:
            one.tick(rng)
        most = unavailable_max(order.unavailable, count)
        assert sum(one.away for one in nodes if one.name not in broken) <= most
        if moves.finish:
            break
    if bad:
        assert order.halted is not None
        assert {one.desired for one in nodes} == {"a"}
        assert {one.runs for one in nodes if one.name not in broken} == {"a"}
    else:
        assert is_done([one.member() for one in nodes])
        assert {one.runs for one in nodes} == {"b"}
