"""Who leads: each policy's sequences, and, against a plain model, never two that may act."""

import random

import pytest

from haptera.controllers.leadership import Contender, Grant, Lead, Succession, succeed
from haptera.kinds.group import LeaderPolicy

LOWEST, FIRST = LeaderPolicy.LOWEST, LeaderPolicy.FIRST
RANK, NONE = LeaderPolicy.RANK, LeaderPolicy.NONE


def members(**running):
    """Of each rank, on the node of its number, for how long it runs; None: it does not."""
    return {
        int(name[1:]): Contender(int(name[1:]), f"n{name[1:]}", ms) for name, ms in running.items()
    }


def grant(epoch, rank, *, wanted=True, over=False):
    return Grant(epoch, rank, f"n{rank}", wanted, over)


def asked(running, grants=(), policy=LOWEST, configured=None, lead=None, last=0):
    return succeed(running, grants, policy, configured, lead, last)


@pytest.mark.parametrize(
    ("policy", "configured", "chosen"),
    [(LOWEST, None, 1), (FIRST, None, 2), (RANK, 2, 2), (RANK, 0, None), (NONE, None, None)],
)
def test_each_policy_chooses_among_those_that_run(policy, configured, chosen):
    running = members(r0=None, r1=10, r2=20)

    found = asked(running, policy=policy, configured=configured)

    expected = None if chosen is None else Lead(1, chosen, f"n{chosen}")
    assert found == Succession(grant=expected)


def test_who_leads_goes_on_though_a_lower_rank_is_back():
    held = grant(4, 2)

    assert asked(members(r0=5, r1=5, r2=9), [held], last=4) == Succession()


def test_a_dead_leader_s_lease_is_taken_back_before_the_next_is_granted():
    running = members(r0=None, r1=5)
    ended = grant(1, 0, over=True)

    first = asked(running, [ended], last=1)
    second = asked(running, [grant(1, 0, wanted=False, over=True)], last=1)

    assert first == Succession(take_back=(ended,))
    assert second == Succession(
        forget=(grant(1, 0, wanted=False, over=True),), grant=Lead(2, 1, "n1")
    )


def test_nothing_is_granted_while_an_earlier_lease_may_be_held():
    silent = grant(1, 0, wanted=False)

    assert asked(members(r0=None, r1=5), [silent], last=1) == Succession()


def test_a_person_has_another_lead_and_gives_it_back_to_the_policy():
    running, held = members(r0=5, r1=5, r2=5), grant(1, 0)

    assert asked(running, [held], lead=2, last=1) == Succession(take_back=(held,))
    assert asked(running, [], lead=2, last=1).grant == Lead(2, 2, "n2")
    assert asked(running, [grant(2, 2)], lead=None, last=2) == Succession(), "it goes on"
    assert asked(members(r0=5, r1=5, r2=None), [], lead=2, last=2).grant == Lead(3, 0, "n0")


def test_that_nobody_knows_whether_it_runs_ends_no_lease():
    held = grant(3, 0)
    unknown, stopped = members(r0=None, r1=5), members(r0=None, r1=5)
    stopped[0] = Contender(0, "n0", None, stopped=True)

    assert asked(unknown, [held], last=3) == Succession()
    assert asked(unknown, [held], policy=RANK, configured=0, last=3) == Succession()
    assert asked(stopped, [held], last=3) == Succession(take_back=(held,))


def test_a_rank_that_was_placed_elsewhere_leads_anew():
    held = Grant(1, 0, "n7", wanted=True, over=False)

    assert asked(members(r0=5), [held], last=1) == Succession(take_back=(held,))


class Cluster:
    """The plainest cluster: processes that hold epochs, and what the controller can see of them.

    What a cut node does is not seen; its leases end `length` after it was last heard, and it counts
    as lost after `patience`.
    """

    def __init__(self, rng, *, length=3, patience=4):
        self.rng, self.length, self.patience = rng, length, patience
        self.now = 0
        self.runs = dict.fromkeys(range(3), True)
        self.cut = dict.fromkeys(range(3))
        self.grants = {}
        self.last = 0
        self.written = []

    def acts(self, epoch):
        """Whether a process may act under this epoch now, whatever anybody thinks."""
        rank, _, spent = self.grants[epoch]
        heard = self.cut[rank] is None or self.now - self.cut[rank] <= self.length
        return self.runs[rank] and not spent and heard

    def happen(self):
        rank = self.rng.randrange(3)
        fate = self.rng.choice(("dies", "starts", "cut", "healed", "time", "time"))
        if fate == "dies":
            self._spend(rank)
            self.runs[rank] = False
        elif fate == "starts":
            self.runs[rank] = True
        elif fate == "cut" and self.cut[rank] is None:
            self.cut[rank] = self.now
        elif fate == "healed":
            if self.cut[rank] is not None and self.now - self.cut[rank] > self.length:
                self._spend(rank)
            self.cut[rank] = None
        else:
            self.now += 1
        for epoch, (held_by, wanted, _) in list(self.grants.items()):
            if not wanted and self.cut[held_by] is None:
                self.grants[epoch] = (held_by, wanted, True)

    def _spend(self, rank):
        for epoch, (held_by, wanted, _) in list(self.grants.items()):
            if held_by == rank:
                self.grants[epoch] = (rank, wanted, True)

    def decide(self):
        lost = {
            rank
            for rank, since in self.cut.items()
            if since is not None and self.now - since > self.patience
        }
        seen = {rank: rank not in lost and self.runs[rank] for rank in self.runs}
        running = {
            rank: Contender(rank, f"n{rank}", 1 if there else None) for rank, there in seen.items()
        }
        grants = [
            Grant(
                epoch, rank, f"n{rank}", wanted, rank in lost or (self.cut[rank] is None and spent)
            )
            for epoch, (rank, wanted, spent) in sorted(self.grants.items())
        ]
        found = succeed(running, grants, LOWEST, None, None, self.last)
        for one in found.take_back:
            rank, _, spent = self.grants[one.epoch]
            self.grants[one.epoch] = (rank, False, spent)
        for one in found.forget:
            # Whoever is told of it is told that it is over.
            rank, _, spent = self.grants[one.epoch]
            self.grants[one.epoch] = (rank, False, spent)
        if found.grant is not None and self.cut[found.grant.rank] is None:
            self.last = found.grant.epoch
            self.grants[self.last] = (found.grant.rank, True, False)
            self.written.append(self.last)


def play(seed, **terms):
    """A history by seed; tells whether two epochs could act at once, and how many there were."""
    cluster = Cluster(random.Random(seed), **terms)
    for _ in range(120):
        cluster.happen()
        cluster.decide()
        if sum(map(cluster.acts, cluster.grants)) > 1:
            return True, cluster.written
    return False, cluster.written


def test_two_epochs_never_act_at_once():
    histories = [play(seed) for seed in range(300)]

    assert not any(two for two, _ in histories)
    assert all(epochs == sorted(set(epochs)) for _, epochs in histories)
    assert sum(len(epochs) > 3 for _, epochs in histories) > 200, "hardly anything happened"


def test_without_a_bound_on_drift_two_would():
    assert any(two for two, _ in (play(seed, length=4, patience=3) for seed in range(300)))
