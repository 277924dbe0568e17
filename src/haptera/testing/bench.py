"""One module under the real engine, on a clock of its own: nothing waits, and all is seen."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import MS, S
from haptera.core.state.side import PARENT, Side
from haptera.core.views.query import view
from haptera.kinds import KINDS
from haptera.kinds.node import JOBS_NONE, Power, jobs, power
from haptera.model.answers.views import Condition, EntityView
from haptera.model.changes import Desired, Stored, StoredEntity
from haptera.model.declared.schema import Kind
from haptera.model.effects import Call, Effect, Reply, SearchPlan, Start, Tell, Work, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Enrolled, Event, Heard, Progressed, Ready, Written
from haptera.model.messages import DesiredUpdate, Mark, Message, Permit
from haptera.model.parts import Context
from haptera.sdk import Module, Target
from haptera.testing.bench_process import BenchProcess
from haptera.testing.searching import searched

Made = TypeVar("Made")

NODE = "n01"
SETTLE_S = 600


class Bench(Generic[Made]):
    """Runs a module's functions on a fake of what they are handed, as a real engine asks for them.

    `on` stands for what `connect` makes; or `connect` makes it of the real target, instead of the
    module's own. `settings` are what a site gives the module. Its entity is the node itself, or
    for a module of another kind an entity of that kind, the cluster's or on a node whose agent is
    up. What is disruptive, the node permits, unless it is `busy`: then it refuses in these words.
    """

    def __init__(
        self,
        module: Module[Made],
        attributes: Mapping[str, str],
        *,
        on: Made | None = None,
        connect: Callable[[Target], Made] | None = None,
        settings: Mapping[str, Any] | None = None,
        busy: str | None = None,
        kinds: Mapping[str, Kind] = KINDS,
    ) -> None:
        self._process = BenchProcess(
            module, on=on, connect=connect, settings=settings, now=lambda: self._now
        )
        self._busy = busy
        self._dark = False
        self._now = S
        self._revision = 0
        self.calls: list[str] = []
        self.progress: list[tuple[str, float | None]] = []
        manifest = module.manifest()
        kind = manifest.parts[0].kind
        self.entity = node_id(NODE) if kind == "node" else EntityId(kind, "bench", NODE)
        if kind in kinds and kinds[kind].of_cluster:
            self.entity = EntityId(kind, "bench", None)
        node = NODE if manifest.context is Context.SELF else None
        self._side = Side(manifest.context, node, 1, "bench", 5 * S)
        self._other = NODE if node is None else PARENT
        self._catalog = Catalog(kinds, [manifest])
        self._attributes = dict(attributes)
        self._told: tuple[DesiredUpdate, ...] = ()
        self._held: Mark | None = None

    async def settle(
        self, desired: Mapping[str, str | int], *, within_s: int = SETTLE_S
    ) -> EntityView:
        """Let the engine bring the entity there; returns how it stands then.

        It returns as soon as all that is desired is so, else after `within_s` of its own time.
        """
        async with self._process.alive():
            return await self._settled(self._engine(desired), self._now + within_s * S)

    async def _settled(self, engine: Engine, end: int) -> EntityView:
        events: list[Event] = [Enrolled(self._other, 1)]
        while self._now < end:
            effects = engine.handle(events, self._now)
            engine.check()
            row = engine.table.get(self.entity)
            assert row is not None
            seen = row.belief.known.get(power.name)
            self._dark = seen is not None and seen.value == Power.OFF
            if row.stance.condition is Condition.CONVERGED and row.work.stepping is None:
                break
            events = [event for effect in effects for event in await self._perform(effect)]
            deadline = engine.deadline()
            self._now += MS
            if not events and deadline is not None:
                self._now = max(self._now, min(deadline, end))
        row = engine.table.get(self.entity)
        assert row is not None
        return view(row, self._now)

    def _engine(self, desired: Mapping[str, str | int]) -> Engine:
        values = {name: Desired(value, "bench") for name, value in desired.items()}
        entities = [StoredEntity(self.entity, self._attributes, "bench", values, 1)]
        if self.entity.kind != "node" and self.entity.node is not None:
            quiet = {} if self._busy is not None else {jobs.name: JOBS_NONE}
            entities.append(StoredEntity(node_id(NODE), quiet, "bench", {}, 1))
        # A parent tells its agent all of it again, and what it tells counts as much as before.
        self._told, self._held = tuple(map(_update, entities)), None
        return Engine(self._side, self._catalog, Stored(1, 1, entities, [], {}), 0, self._now)

    async def _perform(self, effect: Effect) -> list[Event]:
        match effect:
            case Start(module, process):
                return [Ready(module, process)]
            case SearchPlan():
                return [searched(effect)]
            case Write(ticket):
                self._revision += 1
                return [Written(ticket, self._revision)]
            case Call():
                return await self._call(effect)
            case Tell(_, message) if not self._dark:
                return [self._hello(message)]
            case Reply():
                raise AssertionError(effect)
            case _:
                return []  # what is desired does not change while a step runs

    def _hello(self, told: Message) -> Heard:
        """The other side's reply to what it is sent: that it holds it, and its permit."""
        permit = self._busy is None
        rooms = [one.id for one in told.room_asks or () if not one.harmless]
        ids = [*(one.id for one in told.asks or ()), *rooms]
        said = tuple(Permit(one, permit, self._busy or "") for one in ids)
        if self._other == PARENT:
            self._held = self._held or told.desired
            message = Message(1, 0, 0, self._held, Mark(), updates=self._told, permits=said)
        else:
            message = Message(1, 0, 0, told.desired, Mark(), permits=said)
        return Heard(self._other, 1, message, self._now)

    async def _call(self, call: Call) -> list[Event]:
        if call.work is Work.WATCH:
            return []
        self.calls.append(call.part)
        told = await self._process.call(call)
        self.progress += [(one.text, one.done) for one in told if isinstance(one, Progressed)]
        return told


def _update(one: StoredEntity) -> DesiredUpdate:
    values = {name: held.value for name, held in one.desired.items()}
    return DesiredUpdate(one.entity, one.revision, values, one.attributes)
