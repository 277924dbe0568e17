"""A cluster folded into its parent: one real engine runs all parts, on a model of what is there.

Nodes have no agents of their own here, so no hello is sent and nothing sealed: ten thousand nodes
and a day pass in a minute or two. In return, nothing shows what the network between a parent and
its nodes does.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Final

from msgspec.structs import replace

from haptera.core.engine import Engine
from haptera.core.state.limits import S
from haptera.core.state.row import EntityState
from haptera.core.state.side import PARENT
from haptera.model.answers.views import SETTLED
from haptera.model.changes import Author, Change, StoredEntity
from haptera.model.declared.packing import schema_digest
from haptera.model.declared.schema import Applied, Kind, digest
from haptera.model.entity import EntityId
from haptera.model.events import Proposed, WallClockSet
from haptera.model.parts import Manifest
from haptera.testing.actual import Actual, PartTimes, Values
from haptera.testing.clock import Clock, MachineClock
from haptera.testing.controlling import GivenController, SimulatedControllers
from haptera.testing.disk import Disk
from haptera.testing.folded_catalog import FoldedCatalog
from haptera.testing.network import Network, NetworkFaults
from haptera.testing.tape import TapeEntry
from haptera.testing.world_process import HELLO_S, WALL_OFFSET_NS, WorldProcess

EPOCH: Final = 7
# Restarted by what watches over it.
RESTART_NS: Final = 2 * S


class FoldedWorld:
    """One parent with all that it manages. One seed is one history.

    `entities` are what it has stored, `values` how they really are: of what is compared by its
    digest, `current` or `stale`. `pace` says how long parts take and how often steps fail.
    `controllers` live and die with the parent.

    Raises:
        HapteraError: the manifests cannot be planned with.
    """

    folded = True

    def __init__(
        self,
        seed: int,
        kinds: Mapping[str, Kind],
        manifests: Iterable[Manifest],
        entities: Iterable[StoredEntity],
        values: Mapping[EntityId, Values],
        pace: PartTimes | None = None,
        controllers: Sequence[GivenController] = (),
    ) -> None:
        self.clock = Clock(seed)
        self.network = Network(self.clock, NetworkFaults())
        self.hello_ns = HELLO_S * S
        self.wall_offset_ns = WALL_OFFSET_NS
        self.checked_every = 1_000_000
        self.catalog = catalog = FoldedCatalog(kinds, manifests)
        self.schema = schema_digest(kinds.values(), catalog.parts())
        self.tape: list[TapeEntry] | None = None
        self.speaks: dict[int, str] = {}
        self.clocks: dict[int, MachineClock] = {}
        self.workers_killed = 0.0
        self.actual = Actual(self.clock, catalog, self, pace or PartTimes())
        disk = Disk(self.clock, PARENT, EPOCH)
        # Copies: what is written changes them, and other worlds begin with the same.
        disk.entities = {one.entity: replace(one, desired={**one.desired}) for one in entities}
        disk.revision = disk.desired_revision = max(
            (one.revision for one in disk.entities.values()), default=0
        )
        self.parent = WorldProcess(self, PARENT, disk, None)
        self.parent.start()
        for entity in sorted(disk.entities):
            self.actual.put(entity, self._begun_with(entity, values.get(entity, {})))
        self._tickets = count(1)
        # Without them there is no loop to turn: time passes faster.
        self.controllers = SimulatedControllers(self, controllers) if controllers else None
        if self.controllers is not None:
            self.controllers.begin()

    def propose(
        self,
        changes: Iterable[Change],
        if_revision: int | None = None,
        author: Author | None = None,
    ) -> int:
        """Ask for changes of what is desired; returns the ticket of the reply."""
        ticket = next(self._tickets)
        self.parent.deliver([Proposed(ticket, tuple(changes), if_revision, author)])
        return ticket

    @property
    def engine(self) -> Engine:
        """The parent's engine, while it is up."""
        assert self.parent.engine is not None, "the parent is down"
        return self.parent.engine

    def settled(self) -> bool:
        """True if all is as desired, nothing is under way, and all that was written is decided."""
        engine = self.parent.engine
        return (
            engine is not None
            and not engine.proposals.waits
            and not engine.rounds.backlog.waits
            and all(
                row.stance.condition in SETTLED and row.work.stepping is None
                for row in engine.table
            )
        )

    def is_still(self) -> bool:
        """True if nothing goes on by itself: all is as desired, or halted until a person speaks."""
        engine = self.parent.engine
        return engine is not None and all(
            _halted(row) or (row.stance.condition in SETTLED and row.work.stepping is None)
            for row in engine.table
        )

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.run_until(self.clock.now + int(seconds * S))

    def run_until(self, end: int) -> None:
        """Let time pass until then."""
        if self.controllers is None:
            self.clock.run_until(end)
        else:
            self.controllers.run_until(end)

    def wall_s(self) -> float:
        """The time of the wall clock, in seconds since 1970."""
        return (self.clock.now + self.wall_offset_ns) / S

    def set_wall(self, wall_s: float) -> None:
        """Set the wall clock: it shows this now."""
        self.wall_offset_ns = int(wall_s * S) - self.clock.now
        self.parent.deliver([WallClockSet(self.wall_offset_ns)])

    def close(self) -> None:
        """End its controllers for good."""
        if self.controllers is not None:
            self.controllers.close()

    def kill_parent(self, away_s: float) -> None:
        """Kill the parent's daemon, which is started again after so long."""
        self.clock.happened["parent killed"] += 1
        self.parent.crash()
        if self.controllers is not None:
            self.controllers.end()
        self.clock.after(int(away_s * S) or RESTART_NS, self._restart)

    def process(self, name: str) -> WorldProcess | None:
        """The parent; nobody else takes part."""
        return self.parent if name == PARENT else None

    def machine_clock(self, name: str) -> MachineClock:
        """The world's time."""
        return MachineClock(self.clock, "world")

    def device(self, entity: EntityId) -> Actual:
        """The device that carries out calls for this entity."""
        return self.actual

    def digest(self, entity: EntityId, variable: str) -> str:
        """The digest of the plain data that this variable compares."""
        row = self._row(entity)
        return Applied.STALE if row is None else row.digest(variable)

    def contents(self, entity: EntityId, variable: str) -> str:
        """The digest of its values alone."""
        row = self._row(entity)
        plain = {} if row is None else row.plain(variable)
        return digest({"": sorted(map(str, plain.values()))})

    def _row(self, entity: EntityId) -> EntityState | None:
        """The parent's row of an entity; None where it is down, and hears nothing."""
        return None if self.parent.engine is None else self.parent.engine.table.get(entity)

    def _restart(self) -> None:
        if self.parent.engine is None:
            self.parent.start()
            if self.controllers is not None:
                self.controllers.begin()

    def _begun_with(self, entity: EntityId, values: Values) -> Values:
        kind = self.catalog.kinds[entity.kind]
        begun = {}
        for name, value in values.items():
            variable = kind.variable(name)
            if variable is None or value == variable.unknown:
                continue
            is_current = variable.values is Applied and value == Applied.CURRENT
            begun[name] = self.contents(entity, name) if is_current else value
        return begun


def _halted(row: EntityState) -> bool:
    """True if its controller has halted over it."""
    halts = row.kind.halts
    return halts is not None and halts.said.name in row.desired.values
