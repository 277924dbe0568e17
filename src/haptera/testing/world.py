"""A whole cluster in one process: real engines; network, clock and disks are seeded models."""

from collections.abc import Iterable, Mapping
from itertools import count

from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import MS, S
from haptera.core.state.side import PARENT
from haptera.kinds import KINDS
from haptera.model.answers.views import SETTLED
from haptera.model.changes import Author, Change
from haptera.model.declared.packing import schema_digest
from haptera.model.declared.schema import Kind
from haptera.model.entity import EntityId
from haptera.model.events import (
    Enrolled,
    Proposed,
)
from haptera.model.parts import Manifest
from haptera.planner.search.search_budget import WORK_MAX
from haptera.testing.clock import Clock, MachineClock
from haptera.testing.disk import Disk
from haptera.testing.machine import Machine
from haptera.testing.network import Network, NetworkFaults
from haptera.testing.radio import agree
from haptera.testing.tape import Booted, TapeEntry
from haptera.testing.tree import Moving, ParentTraffic
from haptera.testing.world_process import HELLO_S, WALL_OFFSET_NS, WorldProcess
from haptera.wire.seal import SealRole

RESTART_NS = 200 * MS
# How often in H what is due between parents is seen to.
TENDED_AN_HELLO = 10
# For how long at most a machine ran when a process of a drifting world began on it.
UPTIME_NS_MAX = 400 * 24 * 3_600 * S
# How long a new session takes to be known at all parents that its node may have.
SPREAD_NS = 500 * MS


class World:
    """A parent and its nodes. One seed is one history; `manifests` are the modules' own.

    `parents` are the lists of nodes that are not the root's own, and of parents below: each name
    on a list is a parent below, and follows the root where it has no list itself.
    `work_max` is what a plan may cost before a worker searches for it; `hello_s` is H. Each
    process asserts in every `checked_every`-th of its turns what must hold between any two.
    """

    # By how much, of a million, clocks of machines go fast or slow. 0: all show the world's time.
    drift_ppm = 0
    folded = False
    wall_offset_ns = WALL_OFFSET_NS

    def __init__(
        self,
        seed: int,
        nodes: Iterable[str],
        manifests: Iterable[Manifest],
        faults: NetworkFaults,
        work_max: int = WORK_MAX,
        parents: Mapping[str, tuple[str, ...]] | None = None,
        hello_s: int = HELLO_S,
    ) -> None:
        self.clock = Clock(seed)
        self.hello_ns = hello_s * S
        self.network = Network(self.clock, faults)
        self.checked_every = 1
        self._work_max = work_max
        self.install(KINDS, manifests)
        names = list(nodes)
        self.machines = {name: self._machine(name) for name in names}
        self.parent = WorldProcess(self, PARENT, Disk(self.clock, PARENT, 7), None)
        self.agents: dict[str, WorldProcess] = {}
        self.incarnations = dict.fromkeys(names, 0)
        self._parents = parents or {}
        listed = sorted({one for listed in self._parents.values() for one in listed})
        disks = {name: Disk(self.clock, name, number) for number, name in enumerate(listed, 8)}
        self.below = {name: WorldProcess(self, name, disk, None) for name, disk in disks.items()}
        self.disks = [self.parent.disk, *(one.disk for one in self.below.values())]
        self.tape: list[TapeEntry] = []
        self.boots: list[Booted] = []
        # Who speaks as which boot, in the order in which they began.
        self.speaks: dict[int, str] = {}
        # By which clock each start of a process counts.
        self.clocks: dict[int, MachineClock] = {}
        self.workers_killed = 0.0  # the share of searches that end so
        self._tickets = count(1)
        for process in self.parents:
            process.start()
        if self.below:
            self._between = ParentTraffic(self.parents, self.parents_of)
            self._tend_tree()

    def install(self, kinds: Mapping[str, Kind], manifests: Iterable[Manifest]) -> None:
        """Have processes that start from now on be of this version."""
        self.catalog = Catalog(kinds, manifests, self._work_max)
        self.schema = schema_digest(kinds.values(), self.catalog.parts())

    def _machine(self, name: str) -> Machine:
        machine = Machine(self.clock, name, self._booted, self._stopped)
        # How late its module says that effects come, they do by any clock.
        machine.late_ms = machine.late_ms * (1_000_000 - self.drift_ppm) // 1_000_000
        return machine

    def propose(
        self,
        changes: Iterable[Change],
        if_revision: int | None = None,
        author: Author | None = None,
    ) -> int:
        """Ask the parent for changes of desired state; returns the ticket of its reply."""
        ticket = next(self._tickets)
        self.parent.deliver([Proposed(ticket, tuple(changes), if_revision, author)])
        return ticket

    @property
    def parents(self) -> tuple[WorldProcess, ...]:
        """The root, and the parents below it."""
        return self.parent, *self.below.values()

    def process(self, name: str) -> WorldProcess | None:
        """A parent, or the agent of a node that has one."""
        if name == PARENT:
            return self.parent
        return self.below.get(name) or self.agents.get(name)

    def machine_clock(self, name: str) -> MachineClock:
        """That of the machine on which a process of this name begins, in its boot."""
        if not self.drift_ppm:
            return MachineClock(self.clock, "world")
        rng = self.clock.rng(f"clock/{name}")
        origin, ppm = rng.randrange(UPTIME_NS_MAX), rng.choice((-1, 0, 1)) * self.drift_ppm
        return MachineClock(self.clock, f"{name} {origin:x}", origin, ppm)

    def device(self, entity: EntityId) -> Machine:
        """The machine that an entity is on."""
        assert entity.node is not None, f"{entity} is on no machine"
        return self.machines[entity.node]

    def parents_of(self, name: str) -> tuple[str, ...]:
        """The parents that a node, or a parent below, may have."""
        return self._parents.get(name, (PARENT,))

    def keeper(self, node: str) -> WorldProcess:
        """The first parent of a node's list."""
        return self.below.get(self.parents_of(node)[0], self.parent)

    def _tend_tree(self) -> None:
        """What is due between parents, by and by."""
        self._between.advance()
        self.clock.after(self.hello_ns // TENDED_AN_HELLO, self._tend_tree)

    def _tend_agent(self, agent: WorldProcess, moving: Moving) -> None:
        if self.agents.get(agent.name) is agent:
            moving.work()
            self.clock.after(self.hello_ns, self._tend_agent, agent, moving)

    def converged(self) -> bool:
        """Whether the parent knows all to be as desired, and nothing is under way."""
        engine = self.parent.engine
        return engine is not None and all(
            row.stance.condition in SETTLED and row.work.stepping is None for row in engine.table
        )

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.run_until(self.clock.now + int(seconds * S))

    def wall_s(self) -> int:
        """What the wall clocks show."""
        return (self.clock.now + self.wall_offset_ns) // S

    def settle(self, seconds: float) -> bool:
        """Let time pass until all is as desired; tells whether it came to that."""
        return self.clock.run_until(self.clock.now + int(seconds * S), self.converged)

    def crash(self, process: WorldProcess) -> None:
        """Kill a daemon; what watches over it starts it again."""
        self.clock.happened["process killed"] += 1
        process.crash()
        self.clock.after(RESTART_NS, self._restart, process)

    def promote(self, copy: Disk) -> None:
        """The root is gone for good; its standby, which has this copy, is the root from now on."""
        self.clock.happened["standby promoted"] += 1
        self.parent.crash()
        copy.promote()
        self.parent.disk = copy
        self.parent.clock = self.machine_clock(PARENT)
        self.disks.append(copy)
        self.parent.start()

    def _restart(self, process: WorldProcess) -> None:
        alive = process.node is None or self.agents.get(process.node) is process
        if alive and process.engine is None:
            process.start()

    def _booted(self, name: str) -> None:
        """A machine has booted: its agent enrols, in a new incarnation, with nothing kept."""
        keeper = self.keeper(name)
        if keeper.engine is None:
            self.clock.after(100 * MS, self._enrol_again, name, self.machines[name].cuts)
            return
        self.incarnations[name] += 1
        cuts = self.machines[name].cuts
        self.boots.append(Booted(self.clock.now, name, self.incarnations[name], cuts))
        disk = Disk(self.clock, name, 0)
        self.disks.append(disk)
        disk.incarnations = {PARENT: self.incarnations[name]}
        if (old := self.agents.get(name)) is not None:
            old.crash()
        agent = self.agents[name] = WorldProcess(self, name, disk, name, keeper.name)
        self._grant(keeper, name, self.incarnations[name])
        agent.start()
        parents = self.parents_of(name)
        for other in parents[1:]:
            granted = self.below[other], name, self.incarnations[name]
            self.clock.after(SPREAD_NS, self._grant, *granted)
        if len(parents) > 1:
            self._tend_agent(agent, Moving(agent, parents))

    def _grant(self, parent: WorldProcess, node: str, incarnation: int) -> None:
        """A parent has the session of a node, of this incarnation."""
        parent.disk.incarnations[node] = incarnation
        parent.disk.enrolled.add(node)
        if parent.engine is not None and parent.radio is not None:
            parent.radio.join(node, agree(node, incarnation), SealRole.PARENT)
            parent.deliver([Enrolled(node, incarnation)])

    def _enrol_again(self, name: str, cuts: int) -> None:
        machine = self.machines[name]
        if machine.power == "on" and machine.cuts == cuts:
            self._booted(name)

    def _stopped(self, name: str) -> None:
        agent = self.agents.pop(name, None)
        if agent is not None:
            agent.crash()


class DriftingWorld(World):
    """One whose machines have clocks of their own: fast, slow or right, each from another origin.

    They differ by far more than real ones do, so that what counts on them shows within an hour.
    """

    drift_ppm = 50_000
