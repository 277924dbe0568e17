"""Leases among nodes whose clocks drift, over a network that cuts: no two epochs' effects mix.

What is real here: the seals whose echoes say what was heard and the greetings of processes that
begin anew, the parent's patience with who is silent, the choice of who leads, and the fence. What
is simulated: clocks, the network, processes that stop in the middle of an act, agents and parents
that are killed, and how the parent's wishes reach a node.
"""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

from haptera.app import Fence, StaleEpochError
from haptera.app.lease import NEVER, LeaseTime
from haptera.controllers.leadership import Contender, Grant, succeed
from haptera.core.sync.peers import LEASE_FOR, LOST_AFTER, Peer, Tier
from haptera.kinds.group import LeaderPolicy
from haptera.wire.seal import Agreement, Greet, Opened, SealRole, Session

MS: Final = 1_000_000
HELLO: Final = 1_000 * MS
STEP: Final = 50 * MS
STEPS: Final = 1_200
# The fastest clock to the slowest: as is promised; leases of 3 H, waited for 4 H, allow a third.
DRIFT: Final = 0.25
RANKS: Final = range(3)
STALLS: Final = 0.005
PARENT_DIES: Final = 0.2
HISTORIES: Final = 40


@dataclass
class SimulatedNode:
    """A node: a clock of its own, its ends of the session, and a process that may hold a lease."""

    rank: int
    rate: float
    child: Session
    parent: Session
    peer: Peer
    agreement: Agreement
    sent: list[tuple[int, int]] = field(default_factory=list)
    time: LeaseTime = NEVER
    cut_up: bool = False
    cut_down: bool = False
    runs: bool = True
    # Until when the whole node is frozen; what it was about to do it does then.
    frozen_until: int = 0
    about: int | None = None
    # Epochs: when each was granted here, and those that are spent.
    held: dict[int, int] = field(default_factory=dict)
    spent: set[int] = field(default_factory=set)

    def now(self, world_ns: int) -> int:
        return int(world_ns * self.rate)

    def leads(self, now: int) -> int | None:
        """The epoch by which its process acts, looked up as a program would."""
        for epoch, granted in self.held.items():
            over = now > self.time.until or granted < self.time.since
            if self.runs and epoch not in self.spent and not over:
                return epoch
        return None


def made(rank: int, rng: Random) -> SimulatedNode:
    agreement = Agreement(bytes([rank]) * 32, UUID(int=1), UUID(int=rank + 2), 1, 1, 2)
    child = Session(agreement, SealRole.CHILD, 100 + rank)
    parent = Session(agreement, SealRole.PARENT, 200 + rank)
    greet = parent.open(child.seal(b""), 0)
    assert isinstance(greet, Greet)
    assert isinstance(child.open(parent.seal_hi(greet), 0), Opened)
    assert isinstance(parent.open(child.seal(b""), 0), Opened)
    rate = 1 + rng.uniform(-DRIFT, DRIFT) / 2
    return SimulatedNode(rank, rate, child, parent, Peer(f"n{rank}", 1, silent_since=0), agreement)


class LeaseWorld:
    """One history by seed; `lease_for` is how long a node's leases last, in tenths of H.

    Where it `stalls`, processes are stopped between their look at the lease and their act.
    """

    def __init__(
        self, seed: int, folder: Path, lease_for: int, *, fenced: bool, stalls: bool
    ) -> None:
        self.rng = Random(seed)
        self.lease_ns = lease_for * HELLO // 10
        self.stalls = stalls
        self.fence = Fence(folder / f"epoch-{seed}") if fenced else None
        self.nodes = {rank: made(rank, self.rng) for rank in RANKS}
        self.now = 0
        self.grants: dict[int, tuple[int, bool]] = {}
        self.last = 0
        self.boots = 1_000
        self.effects: list[int] = []

    def run(self) -> None:
        for step in range(STEPS):
            self.now += STEP
            self._happen()
            for node in self.nodes.values():
                if self.now >= node.frozen_until:
                    self._act(node)
                    self._tell(node)
                if (self.now // STEP + node.rank) % (HELLO // STEP) == 0:
                    self._speak(node)
                node.peer.grow_silent(self.now, HELLO)
            if step % 2 == 0:
                self._decide()

    def _happen(self) -> None:
        """Now and then something breaks, and now and then it mends."""
        node = self.nodes[self.rng.choice(RANKS)]
        match self.rng.randrange(160):
            case 0:
                node.cut_up = node.cut_down = True
            case 1:
                node.cut_up = True
            case 2:
                node.cut_down = True
            case 3 | 4 | 5:
                node.cut_up = node.cut_down = False
            case 6:
                node.runs = False
                node.spent.update(node.held)
            case 7 | 8:
                node.runs = True
            case 9:
                node.frozen_until = self.now + self.rng.randrange(6_000) * MS
            case 10 | 11:
                self.boots += 1
                node.child = Session(node.agreement, SealRole.CHILD, self.boots)
                node.sent = []
            case 12 if self.rng.random() < PARENT_DIES:
                self._replace_parent()
            case _:
                pass

    def _replace_parent(self) -> None:
        """It knows what was written, has heard nobody, and has everything told to it again."""
        self.boots += 1
        for one in self.nodes.values():
            one.parent = Session(one.agreement, SealRole.PARENT, self.boots)
            one.peer = Peer(one.peer.name, 1, silent_since=self.now)

    def _speak(self, node: SimulatedNode) -> None:
        """A hello each way; the parent's own is never frozen."""
        if self.now >= node.frozen_until:
            self._send_up(node, node.child.seal(b""))
        self._send_down(node, node.parent.seal(b""))

    def _send_up(self, node: SimulatedNode, datagram: bytes) -> None:
        node.sent.append((node.child.sent, node.now(self.now)))
        if node.cut_up:
            return
        match node.parent.open(datagram, self.now):
            case Opened():
                node.peer.heard(self.now)
            case Greet() as greet:
                self._send_down(node, node.parent.seal_hi(greet))

    def _send_down(self, node: SimulatedNode, datagram: bytes) -> None:
        if node.cut_down or self.now < node.frozen_until:
            return
        match node.child.open(datagram, self.now):
            case Opened():
                heard = [at for sequence, at in node.sent if sequence <= node.child.confirmed]
                if heard:
                    self._confirm(node, max(heard))
            case Greet() as greet:
                self._send_up(node, node.child.seal_hi(greet))

    def _confirm(self, node: SimulatedNode, sent_at: int) -> None:
        """As the agent moves the node's lease time on."""
        until, now = sent_at + self.lease_ns, node.now(self.now)
        if until > node.time.until:
            since = node.time.since if now <= node.time.until else now
            node.time = LeaseTime(until, since)

    def _tell(self, node: SimulatedNode) -> None:
        """What is desired reaches a node that is reached."""
        if node.cut_down:
            return
        for epoch, (rank, wanted) in self.grants.items():
            if rank != node.rank:
                continue
            if not wanted:
                node.spent.add(epoch)
            elif epoch not in node.held and node.runs:
                node.held[epoch] = node.now(self.now)

    def _act(self, node: SimulatedNode) -> None:
        """What it was about to do when it was frozen, then what it does by a fresh look."""
        if node.about is not None:
            self._effect(node.about)
        node.about = None
        if (epoch := node.leads(node.now(self.now))) is not None:
            if self.stalls and self.rng.random() < STALLS:
                node.about = epoch
                node.frozen_until = self.now + self.rng.randrange(8_000) * MS
            else:
                self._effect(epoch)

    def _effect(self, epoch: int) -> None:
        try:
            if self.fence is not None:
                with self.fence.passed(epoch):
                    self.effects.append(epoch)
            else:
                self.effects.append(epoch)
        except StaleEpochError:
            pass

    def _decide(self) -> None:
        def reached(node: SimulatedNode) -> bool:
            return not node.cut_up and self.now >= node.frozen_until

        lost = {rank for rank, one in self.nodes.items() if one.peer.tier is Tier.LOST}
        known = {rank for rank, one in self.nodes.items() if one.peer.heard_at is not None} - lost
        contenders = {
            rank: Contender(rank, f"n{rank}", 1 if one.runs and rank in known else None)
            for rank, one in self.nodes.items()
        }
        grants = []
        for epoch, (rank, wanted) in sorted(self.grants.items()):
            node = self.nodes[rank]
            spent = rank in known and reached(node) and epoch in node.spent
            grants.append(Grant(epoch, rank, f"n{rank}", wanted, spent or rank in lost))
        found = succeed(contenders, grants, LeaderPolicy.LOWEST, None, None, self.last)
        for one in found.take_back:
            self.grants[one.epoch] = (one.rank, False)
        if found.grant is not None:
            self.last = found.grant.epoch
            self.grants[self.last] = (found.grant.rank, True)


def histories(
    folder: Path, *, lease_for: int = LEASE_FOR, fenced: bool = True, stalls: bool = True
) -> list[LeaseWorld]:
    worlds = [
        LeaseWorld(seed, folder, lease_for, fenced=fenced, stalls=stalls)
        for seed in range(HISTORIES)
    ]
    for world in worlds:
        world.run()
    return worlds


def mixed(world: LeaseWorld) -> bool:
    """Whether an epoch acted after a later one had."""
    return world.effects != sorted(world.effects)


def test_no_two_epochs_effects_mix(tmp_path: Path) -> None:
    worlds = histories(tmp_path)

    assert not any(map(mixed, worlds))
    assert sum(world.last > 3 for world in worlds) > HISTORIES // 2, "hardly anybody followed"
    assert sum(len(world.effects) for world in worlds) > HISTORIES * 200


def test_leases_alone_suffice_where_nobody_stalls(tmp_path: Path) -> None:
    assert not any(map(mixed, histories(tmp_path, fenced=False, stalls=False)))


def test_without_a_bound_on_drift_they_would_not(tmp_path: Path) -> None:
    """A node that holds leases for as long as its parent waits, by a clock that is slow."""
    worlds = histories(tmp_path, lease_for=LOST_AFTER, fenced=False, stalls=False)

    assert any(map(mixed, worlds))


def test_without_the_fence_those_who_stall_act_late(tmp_path: Path) -> None:
    assert any(map(mixed, histories(tmp_path, fenced=False)))
