"""Hours of a tree on which something breaks every minute; the oracle judges what comes of it."""

from dataclasses import replace

from haptera.core.state.limits import S
from haptera.model.changes import Change, Declare
from haptera.model.parts import Manifest
from haptera.modules import load
from haptera.testing.world import DriftingWorld
from haptera.testing.world_process import WorldProcess
from tests.world.history import CALM
from tests.world.storm import LOST, MODULES, Storm

# Three levels; the last of the nodes is the root's own.
PARENTS = {
    "n01": ("m1", "m2"),
    "n02": ("m1", "m2"),
    "n03": ("m2", "m1"),
    "n04": ("m2", "m1"),
}
NODES = (*PARENTS, "n05")
# As on large sites: H, another one for each seed in turn, so that what waits for so many H meets
# what does not in other orders; and looks so many times rarer than at a desk.
HELLOS_S, RARER = (10, 20, 30), 10
FAULTS, A_FAULT_EVERY_S = 60, 60
CUT_FOR_S = (8, 90, 600)
LAG_S_MAX = 8
# An eighth of the time goes into asserting it each time; storms do.
CHECKED_EVERY = 8


class Hours(Storm):
    """A root, two parents below it, five nodes; standbys are promoted."""

    listen_s = 60

    def __init__(self, seed: int) -> None:
        self.manifests = [rarer(load(name).manifest()) for name in MODULES]
        hello_s = HELLOS_S[seed % len(HELLOS_S)]
        world = DriftingWorld(seed, NODES, self.manifests, CALM, parents=PARENTS, hello_s=hello_s)
        world.checked_every = CHECKED_EVERY
        self._begin(world)

    def unfold(self, steps: int) -> None:
        """So many faults, one a minute."""
        for _ in range(steps):
            self._run(self.rng.expovariate(1 / A_FAULT_EVERY_S))
            self._happen(self.rng.choice(NODES))

    def _brew(self) -> None:
        super()._brew()
        for process in self.world.below.values():
            process.disk.slow_ms = self.rng.choice((20, 500))
        self.happenings = [
            *self.happenings,
            self._rekey,
            *self.rng.sample([self._kill_parent, self._cut_off, self._promote, self._dethrone], 2),
        ]

    def _a_parent(self) -> WorldProcess:
        return self.rng.choice(self.world.parents)

    def _kill_parent(self, _: str) -> None:
        victim = self._a_parent()
        if victim.engine is not None:
            self.world.crash(victim)

    def _pause_parent(self, _: str) -> None:
        self._a_parent().pause(self.rng.choice((1, 10, 90)))

    def _cut_off(self, name: str) -> None:
        """Between a node, or a parent below, and the first that it may follow."""
        below = self.rng.choice((name, name, *self.world.below))
        pair = frozenset((below, self.world.parents_of(below)[0]))
        self.world.network.cut.add(pair)
        self.world.clock.happened["link cut"] += 1
        delay_ns = int(self.rng.random() * self.rng.choice(CUT_FOR_S) * S)
        self.world.clock.after(delay_ns, self.world.network.cut.discard, pair)

    def _rekey(self, name: str) -> None:
        """A node's agent, or a parent."""
        one = self.rng.choice((self.world.agents.get(name), self._a_parent()))
        if one is not None and one.awake:
            one.rekey()

    def _promote(self, _: str) -> None:
        """The root is lost for good; its standby lagged, and what it had not heard of is gone."""
        lag_ns = int(self.rng.random() * LAG_S_MAX * S)
        self._succeed(self.world.clock.now + lag_ns)

    def _dethrone(self, _: str) -> None:
        """The root loses its lease; its standby, which takes that, heard of nothing since."""
        if self.world.parent.awake:
            self._succeed(self._lose_lease())

    def _succeed(self, until: int) -> None:
        """The root's standby has a copy of now, and takes over then."""
        root = self.world.parent
        copy, replicated = root.disk.copy(), set(root.replies)
        self._run((until - self.world.clock.now) / S)
        self.world.clock.run_until(until)
        self.asked = [
            (ticket if ticket in replicated else LOST, asked, changes)
            for ticket, asked, changes in self.asked
        ]
        self.world.promote(copy)
        # Nodes of its own whose last enrolment it did not hear of are booted again by hand.
        for name in [one for one in self.world.agents if self.world.keeper(one) is root]:
            if copy.incarnations.get(name) != self.world.incarnations[name]:
                self.world.machines[name].cut()

    def _declaring(self, name: str) -> tuple[Change, ...]:
        first, *rest = super()._declaring(name)
        assert isinstance(first, Declare)
        return (
            Declare(first.entity, {**first.attributes, **listed(name)}, first.owner),
            *rest,
        )


def listed(name: str) -> dict[str, str]:
    """The attribute that names the parents of a node, where it is not the root's own."""
    return {"parents": ", ".join(PARENTS[name])} if name in PARENTS else {}


def rarer(manifest: Manifest) -> Manifest:
    """A module that looks less often."""
    looks = [replace(look, every_ms=look.every_ms * RARER) for look in manifest.looks]
    return replace(manifest, looks=looks)
