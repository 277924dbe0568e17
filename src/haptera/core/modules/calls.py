"""The calls that modules have not answered yet; an answer to anything else is stale."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from haptera.core.modules.catalog import Catalog, attributes
from haptera.core.modules.slots import HEAD_START_NS, Reliability, SlotCaller, SlotClaim, Slots
from haptera.core.state.entity.decision import Assent, Delay
from haptera.core.state.limits import ANSWER_GRACE_NS
from haptera.core.state.row import EntityState
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.model.answers.views import Condition
from haptera.model.declared.schema import digest
from haptera.model.effects import Call, Cancel, Work
from haptera.model.entity import EntityId
from haptera.model.intent import Intent
from haptera.model.parts import EnrolmentLevel, Look, Part, Step

# Work that takes one of its module's slots: a watch waits for what happens, a gate cannot wait.
_COUNTS: Final = (Work.LOOK, Work.STEP)
_AT_REST: Final = (Condition.CONVERGED, Condition.IDLE)


@dataclass(frozen=True, slots=True)
class Pending:
    """One call under way, and the attributes and desired data by which its module serves it."""

    entity: EntityId
    part: Part
    work: Work
    process: int
    attributes: Mapping[str, str]
    values: Mapping[str, str | int]

    @property
    def server(self) -> tuple[str, int]:
        """The module and its process that were asked."""
        return self.part.module, self.process


class Calls:
    """Calls by id; an id is never used again within a process.

    A look or step is asked once it has taken a slot of its module. `serving` tells which process
    of a module new calls go to. Where a process is gone, its calls
    are lost: nothing answers them any more, and each is there only until it is given up.
    """

    def __init__(self, timers: Timers, catalog: Catalog, serving: Callable[[str], int]) -> None:
        self._timers = timers
        self._catalog = catalog
        self.slots = Slots(lambda module: catalog.manifests.get(module))
        self._serving = serving
        self._pending: dict[int, Pending] = {}
        self._of: dict[tuple[str, int], dict[int, None]] = {}
        # What became of processes, for as long as a call of theirs is to be given up.
        self._gone: dict[tuple[str, int], str] = {}
        self._count = 0

    def takes_turn(
        self, turn: Turn, row: EntityState, node: EntityState | None, part: Part
    ) -> bool:
        """Take a slot for this part; False where there is none: then it is in line."""
        acts = isinstance(part, Step)
        since = turn.now if self._rests(row) and not acts else turn.now - HEAD_START_NS
        return self.slots.acquire(_caller(row.id, part), self._claim(row, node, part), since)

    def slot_for(self, row: EntityState, node: EntityState | None, part: Part) -> Assent | Delay:
        """The answer to a claim of a slot for a call of this part."""
        return self.slots.answer(_caller(row.id, part), self._claim(row, node, part))

    def is_queued(self, entity: EntityId, part: Part) -> bool:
        """Whether this part waits in line for its slot, or was just granted one."""
        return self.slots.is_queued(_caller(entity, part))

    def stay(self, entity: EntityId, part: Part) -> None:
        """This part is not to be called yet, for another reason; its place in line is kept."""
        self.slots.stay(_caller(entity, part))

    def reconcile(self, row: EntityState, claimed: Collection[str]) -> None:
        """The parts of these paths are to be called now, or wait for it: no others do."""
        if self._rests(row):
            self.slots.rest(row.id, claimed)
        else:
            self.slots.reconcile(row.id, claimed)

    def give_back(self, entity: EntityId, part: Part) -> None:
        """This part is not called any more, if it was to be."""
        self.slots.give_back(_caller(entity, part))

    def ask(
        self,
        turn: Turn,
        row: EntityState,
        node: EntityState | None,
        part: Part,
        work: Work,
        *,
        deadline_at: int | None,
        intent: Intent | None = None,
    ) -> int:
        """Call the part's module; returns the call's id."""
        self._count += 1
        process, given = self._serving(part.module), attributes(row, node)
        compared = row.plain(_compared_with(row, part))
        self._pending[self._count] = Pending(row.id, part, work, process, given, compared)
        self._of.setdefault((part.module, process), {})[self._count] = None
        if deadline_at is not None:
            self._timers.set(("call", self._count), deadline_at + ANSWER_GRACE_NS)
        turn.effects.append(
            Call(
                self._count,
                work,
                part.module,
                part.name,
                row.id,
                given,
                row.plain(),
                digest(compared),
                deadline_at,
                None if intent is None else intent.id,
                intent is not None and intent.enrols,
                process,
            )
        )
        return self._count

    def enrolment(self, module: str) -> EnrolmentLevel:
        """How this module hands tokens to nodes."""
        return self._catalog.manifests[module].enrolment

    def get(self, call: int) -> Pending | None:
        """The call under way, None where an answer to it is stale."""
        pending = self._pending.get(call)
        return None if pending is None or pending.server in self._gone else pending

    def finish(self, call: int) -> Pending | None:
        """As `get`, and the call is under way no more."""
        pending = self.get(call)
        if pending is not None:
            self._drop(call, pending)
        return pending

    def cancel(self, turn: Turn, call: int) -> None:
        """Nobody waits for this call any more, be it under way or lost."""
        pending = self._pending.get(call)
        if pending is not None and self.give_up(call) is None:
            self._drop(call, pending)
            turn.effects.append(Cancel(call, pending.part.module, pending.process))

    def lose(self, module: str, process: int, text: str) -> bool:
        """This process is gone: tells whether it had calls under way, which are lost from now on.

        However many there are, that takes no time; giving them up does.
        """
        lost = (module, process) in self._of
        if lost:
            self._gone[module, process] = text
        return lost

    @property
    def are_lost(self) -> bool:
        """Whether any are to be given up."""
        return bool(self._gone)

    def lost(self, call: int) -> Pending | None:
        """A call that is to be given up."""
        pending = self._pending.get(call)
        return pending if pending is not None and pending.server in self._gone else None

    def give_up(self, call: int) -> str | None:
        """What became of the process of this call, if it is lost; it is there no more."""
        pending = self.lost(call)
        if pending is None:
            return None
        text = self._gone[pending.server]
        self._drop(call, pending)
        return text

    def is_outdated(self, call: int, row: EntityState, node: EntityState | None) -> bool:
        """True of a call under way if one made now would go to another process, or by other data.

        What differs only in data that nothing compares with the world is the same.
        """
        pending = self.get(call)
        return pending is not None and (
            pending.process != self._serving(pending.part.module)
            or pending.attributes != attributes(row, node)
            or pending.values != row.plain(_compared_with(row, pending.part))
        )

    def of_process(self, module: str, process: int) -> list[int]:
        """The calls that a process of a module has under way."""
        return [*self._of.get((module, process), ())]

    def check(self) -> None:
        """Assert what must hold between any two calls."""
        held = {call: server for server, calls in self._of.items() for call in calls}
        assert held == {call: pending.server for call, pending in self._pending.items()}
        assert self._gone.keys() <= self._of.keys()
        self.slots.check()

    def _rests(self, row: EntityState) -> bool:
        return row.stance.condition in _AT_REST

    def _claim(self, row: EntityState, node: EntityState | None, part: Part) -> SlotClaim:
        # A step waits on while what was read ages, and is read again.
        device, lasts = self._device(row, node, part.module), isinstance(part, Step)
        return SlotClaim(device, _reliability(row, part.module), lasts=lasts)

    def _device(self, row: EntityState, node: EntityState | None, module: str) -> str | None:
        """Which device of the module this entity is of, where the module tells these apart."""
        name = self._catalog.manifests[module].device
        if name is None:
            return None
        values = attributes(row, node)
        value = values.get(name) or values.get(f"node.{name}")
        return None if value is None else _device_of(value)

    def _drop(self, call: int, pending: Pending) -> None:
        self._timers.drop(("call", call))
        del self._pending[call]
        if pending.work in _COUNTS:
            self.give_back(pending.entity, pending.part)
        calls = self._of[pending.server]
        del calls[call]
        if not calls:
            del self._of[pending.server]
            self._gone.pop(pending.server, None)


def _caller(entity: EntityId, part: Part) -> SlotCaller:
    return SlotCaller(part.module, entity, part.path)


def _reliability(row: EntityState, module: str) -> Reliability:
    """Whether this module's last call for an entity failed; if not, whether any was answered."""
    own = f"{module}."
    if any(path.startswith(own) for path in row.attempts.failures):
        return Reliability.FAILING
    belief = row.belief
    read = [*belief.known.items(), *belief.remembered.items()]
    if any(fact.by == module and name in belief.found_at for name, fact in read):
        return Reliability.ANSWERING
    return Reliability.NEW


def _compared_with(row: EntityState, part: Part) -> str:
    """The variable whose desired data go with the call: what is looked at, or in force."""
    if isinstance(part, Look):
        return part.at
    return next((one.name for one in row.kind.in_force), "")


def _device_of(value: str) -> str:
    """The device that this value of an attribute is in: ADDRESS of ADDRESS/PATH, else all of it.

    >>> _device_of("https://10.0.2.1:8443/redfish/v1/Systems/1"), _device_of("/dev/ttyS0")
    ('10.0.2.1:8443', '/dev/ttyS0')
    """
    address, _, _ = value.rpartition("://")[2].partition("/")
    return address or value
