"""One module under the real engine, on a clock of its own: nothing waits, and all is seen."""

from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import Any, Generic, TypeVar, assert_never

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
from haptera.model.events import Answered, Ended, Enrolled, Event, Failed, Heard, Ready, Written
from haptera.model.messages import DesiredUpdate, Mark, Message, Permit
from haptera.model.parts import Context
from haptera.sdk import Module, Refused, Target
from haptera.testing.searching import searched

Made = TypeVar("Made")

NODE = "n01"
SETTLE_S = 600


class Bench(Generic[Made]):
    """Runs a module's functions on a fake of what they are handed, as a real engine asks for them.

    `on` stands for what `connect` makes. The module's entity is the node itself, or for a module
    of another kind an entity of that kind on a node whose agent is up. What is disruptive, the
    node permits, unless it is `busy`: then it refuses in these words.
    """

    def __init__(
        self,
        module: Module[Made],
        attributes: Mapping[str, str],
        *,
        on: Made,
        busy: str | None = None,
        kinds: Mapping[str, Kind] = KINDS,
    ) -> None:
        self._module = module
        self._on = on
        self._busy = busy
        self._dark = False
        self._now = S
        self._revision = 0
        self.calls: list[str] = []
        manifest = module.manifest()
        kind = manifest.parts[0].kind
        self.entity = node_id(NODE) if kind == "node" else EntityId(kind, "bench", NODE)
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
        engine = self._engine(desired)
        end = self._now + within_s * S
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
        if self.entity.kind != "node":
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
        """What the other side says when it is told something: that it holds it, and its permit."""
        permit = self._busy is None
        ids = [*(one.id for one in told.asks or ()), *(one.id for one in told.room_asks or ())]
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
        at = self._now
        self.calls.append(call.part)
        try:
            return [await self._run(call, at)]
        except Refused as refusal:
            return [Failed(call.id, str(refusal), refused=True)]
        except Exception as error:  # noqa: BLE001  the author's code may raise anything
            return [Failed(call.id, str(error))]

    async def _function(self, call: Call, functions: Mapping[str, Callable[[Any], Any]]) -> Any:
        """What a function tells of the entity, alone or as one of many."""
        function = functions[call.part]
        if call.part not in self._module.together:
            return await _called(function, self._on)
        told = await _called(function, {call.entity: self._on})
        if told is not None and isinstance(error := told[call.entity], Exception):
            raise error
        return None if told is None else told[call.entity]

    def _age_ns(self) -> int:
        """How old a look said that its reading is, by the target that it has at hand."""
        target = getattr(self._on, "target", self._on)
        return target.take_age_ns() if isinstance(target, Target) else 0

    async def _run(self, call: Call, at: int) -> Event:
        match call.work:
            case Work.LOOK:
                reading = await self._function(call, self._module.lookers)
                return Answered(call.id, str(reading), at - self._age_ns())
            case Work.STEP:
                await self._function(call, self._module.steppers)
                return Ended(call.id)
            case Work.HOLD | Work.RELEASE:
                await _called(self._module.gates[call.part], self._on)
                return Ended(call.id)
            case Work.WATCH:
                raise AssertionError(call)
            case _:
                assert_never(call.work)


def _update(one: StoredEntity) -> DesiredUpdate:
    values = {name: held.value for name, held in one.desired.items()}
    return DesiredUpdate(one.entity, one.revision, values, one.attributes)


async def _called(function: Callable[[Any], Any], on: object) -> Any:
    """What a function returns, be it async or plain."""
    returned = function(on)
    return await returned if isawaitable(returned) else returned
