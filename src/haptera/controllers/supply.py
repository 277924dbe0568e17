"""What a pool's slots are in the cluster: instances of a provider, or machines of the site's own.

Reads what is desired, seen and queued, and says what to write: nothing is asked or done here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from haptera.controllers.node_work import WORK, kept_by_others, said_by_others, work_patch
from haptera.controllers.pool import (
    SECOND_NS,
    Create,
    Destroy,
    Drain,
    Pool,
    PoolAction,
    Reopen,
    Slot,
    SlotPhase,
    room_of,
)
from haptera.kinds import instance, node, pool
from haptera.kinds.instance import Exist, RefusalWords, noted_attributes
from haptera.kinds.node import Agent, Power
from haptera.kinds.pool import InstanceSize, parse_factor, parse_sizes
from haptera.model.answers.views import Condition, EntityView
from haptera.model.errors import HapteraError
from haptera.queue.capacity import capacity_of
from haptera.queue.duty import Duty, DutyState

IDLE_S: Final = 300
BOOT_S: Final = 600
PRICE_FACTOR: Final = "1.5"
# The name of the controller of pools, and the owner of what it desires.
NAME: Final = "pools"
WHO: Final = f"controller:{NAME}"
POWERED: Final = {node.power.name: Power.ON.value, node.agent.name: Agent.UP.value}

_ASKED: Final = instance.asked_s.name

Patch = Mapping[str, str | int | None]
Views = Mapping[str, EntityView]


@dataclass(frozen=True, slots=True)
class NodeStanding:
    """Where a node stands in the queue: what is wanted of it, and whether it holds jobs."""

    state: DutyState = DutyState.ABSENT
    wish: Duty | None = None
    holds: bool = False


@dataclass(slots=True)
class PoolWrites:
    """Writes: entities with their attributes, what is desired of them, and those that go.

    `released` is what users desire of the work of nodes that go, by user: it ends with the node.
    """

    declare: dict[str, Mapping[str, str]] = field(default_factory=dict)
    desired: dict[str, dict[str, str | int | None]] = field(default_factory=dict)
    undeclare: list[str] = field(default_factory=list)
    released: dict[str, dict[str, dict[str, None]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.declare or self.desired or self.undeclare)


class Supply(Protocol):
    """Where the instances of a pool come from."""

    def select(self) -> tuple[str, ...]:
        """The selectors of all entities that it needs to see."""

    def slots(self, views: Views, standings: Mapping[str, NodeStanding]) -> list[Slot]:
        """The slots as they are; when their phases began is not known here."""

    def asked_s(self, views: Views) -> Mapping[str, float]:
        """Since when slots are being filled, in wall time, where that is written down."""

    def reconcile(
        self, views: Views, standings: Mapping[str, NodeStanding], writes: PoolWrites
    ) -> None:
        """What is to be written whatever is decided."""

    def refusals(self, views: Views) -> Mapping[str, tuple[InstanceSize, RefusalWords]]:
        """The slots that were refused: their size, and the words of the refusal."""

    def fill(self, slot: str, size: str, writes: PoolWrites) -> None:
        """Have an instance made."""

    def empty(self, slot: str, writes: PoolWrites) -> None:
        """Have it ended."""


@dataclass(frozen=True, slots=True)
class PoolSaid:
    """A pool as it is declared."""

    name: str
    pool: Pool
    provider: str
    at: str | None
    nodes: str | None


def pool_said(view: EntityView) -> PoolSaid:
    """What is desired of a pool, read.

    Raises:
        HapteraError: something is missing.
    """
    desired = {name: one.value for name, one in view.desired.items()}
    for needed in (pool.provider, pool.sizes, pool.most):
        if needed.name not in desired:
            what = f"its {needed.name} is not given"
            raise HapteraError(what, where=view.entity, do=f"desire its {needed.name}")
    provider = str(desired[pool.provider.name])
    if provider == pool.MACHINES and pool.nodes.name not in desired:
        raise HapteraError("its nodes are not given", where=view.entity, do="give a node-set")
    return PoolSaid(
        view.name,
        Pool(
            parse_sizes(str(desired[pool.sizes.name])),
            int(desired.get(pool.least.name, 0)),
            int(desired[pool.most.name]),
            parse_factor(str(desired.get(pool.price_factor.name, PRICE_FACTOR))),
            int(desired.get(pool.idle_s.name, IDLE_S)) * SECOND_NS,
            int(desired.get(pool.boot_s.name, BOOT_S)) * SECOND_NS,
        ),
        provider,
        str(desired.get(pool.at.name, "")) or None,
        str(desired.get(pool.nodes.name, "")) or None,
    )


def supply_of(said: PoolSaid, owner: str, wall_s: float) -> Supply:
    """Where such a pool's instances come from; `owner` is this cluster's tag at providers."""
    if said.provider == pool.MACHINES:
        return MachineSupply(said)
    return InstanceSupply(said, owner, wall_s)


def writes_of(supply: Supply, actions: Iterable[PoolAction], views: Views) -> PoolWrites:
    """What a decision means."""
    writes = PoolWrites()
    for action in actions:
        match action:
            case Create(slot, size):
                supply.fill(slot, size, writes)
                relieve(slot, None, views, writes)
            case Reopen(slot):
                relieve(slot, None, views, writes)
            case Drain(slot, why):
                relieve(slot, why, views, writes)
            case Destroy(slot, why):
                supply.empty(slot, writes)
                # An instance that comes up after all must find no work.
                relieve(slot, why, views, writes)
    return writes


def relieve(slot: str, why: str | None, views: Views, writes: PoolWrites) -> None:
    """Have a slot's node drained, or with no reason opened; what others say of it stays."""
    view = views.get(f"node:{slot}")
    if view is not None and (patch := work_patch(view, WHO, why)):
        writes.desired.setdefault(view.entity, {}).update(patch)


@dataclass(frozen=True, slots=True)
class InstanceSupply:
    """Numbered instances of a provider; each is a node of the same name while it is there."""

    said: PoolSaid
    owner: str
    wall_s: float

    def select(self) -> tuple[str, ...]:
        return (f"instance:{self.said.name}-*", f"node:{self.said.name}-*")

    def slots(self, views: Views, standings: Mapping[str, NodeStanding]) -> list[Slot]:
        found = []
        for view in self._views(views):
            standing = standings.get(view.name, NodeStanding())
            phase = _phase_of_instance(view, standing)
            if phase is not SlotPhase.ABSENT or self._number(view.name) <= self.said.pool.most:
                found.append(Slot(view.name, phase, _size_of(view)))
        return found

    def asked_s(self, views: Views) -> Mapping[str, float]:
        found = ((view.name, view.attributes.get(_ASKED, "")) for view in self._views(views))
        return {name: float(text) for name, text in found if text.isdecimal()}

    def reconcile(
        self, views: Views, standings: Mapping[str, NodeStanding], writes: PoolWrites
    ) -> None:
        """All slots are declared, and each instance that is there is a node."""
        there = {view.name: view for view in self._views(views)}
        for number in range(1, self.said.pool.most + 1):
            name = f"{self.said.name}-{number}"
            if name not in there:
                writes.declare[f"instance:{name}"] = self._attributes()
                writes.desired[f"instance:{name}"] = {instance.exist.name: Exist.ABSENT.value}
        sizes = {one.name: one for one in self.said.pool.sizes}
        for view in there.values():
            size = sizes.get(_size_of(view) or "")
            if size is not None and _is_there(view) and _is_wanted(view):
                state = standings.get(view.name, NodeStanding()).state
                if _ASKED in view.attributes and state is not DutyState.ABSENT:
                    writes.declare[view.entity] = self._attributes()
                self._tend_node(view, size, views.get(f"node:{view.name}"), writes)
            elif not _is_wanted(view):
                self._tend_leaving(view, views.get(f"node:{view.name}"), writes)

    def refusals(self, views: Views) -> Mapping[str, tuple[InstanceSize, RefusalWords]]:
        sizes = {one.name: one for one in self.said.pool.sizes}
        return {
            view.name: (size, RefusalWords.parse(view.error or ""))
            for view in self._views(views)
            if (size := sizes.get(_size_of(view) or "")) and _was_refused(view)
        }

    def fill(self, slot: str, size: str, writes: PoolWrites) -> None:
        asked = {_ASKED: str(int(self.wall_s))}
        writes.declare[f"instance:{slot}"] = {**self._attributes(), **asked}
        wanted = {instance.exist.name: Exist.PRESENT.value, instance.size.name: size}
        writes.desired[f"instance:{slot}"] = dict(wanted)

    def empty(self, slot: str, writes: PoolWrites) -> None:
        gone = {instance.exist.name: Exist.ABSENT.value, instance.size.name: None}
        writes.desired[f"instance:{slot}"] = dict(gone)

    def _tend_node(
        self, view: EntityView, size: InstanceSize, there: EntityView | None, writes: PoolWrites
    ) -> None:
        seen = noted_attributes(view.observed[instance.exist.name].note or "")
        if not seen:
            return
        room = {node.cpus.name: str(size.cpus), node.memory_mb.name: str(size.memory_mb)}
        attributes = {**seen, **room}
        if there is None or there.attributes != attributes:
            writes.declare[f"node:{view.name}"] = attributes
            writes.desired[f"node:{view.name}"] = dict(POWERED)

    def _tend_leaving(self, view: EntityView, there: EntityView | None, writes: PoolWrites) -> None:
        """Nothing is desired any more of the node that ends; once it has, it is none."""
        if there is None:
            return
        if _is_gone(view):
            writes.undeclare.append(there.entity)
            for name in said_by_others(there, WHO):
                patches = writes.released.setdefault(there.desired[name].owner, {})
                patches.setdefault(there.entity, {})[name] = None
        elif names := there.desired.keys() - set(WORK):
            writes.desired[there.entity] = dict.fromkeys(sorted(names))

    def _attributes(self) -> Mapping[str, str]:
        at = {} if self.said.at is None else {instance.at.name: self.said.at}
        return {
            instance.provider.name: self.said.provider,
            instance.pool.name: self.said.name,
            instance.owner.name: self.owner,
            **at,
        }

    def _views(self, views: Views) -> list[EntityView]:
        own = (one for one in views.values() if one.kind == instance.kind.name)
        return [one for one in own if one.attributes.get(instance.pool.name) == self.said.name]

    def _number(self, name: str) -> int:
        return int(name.rpartition("-")[2])


@dataclass(frozen=True, slots=True)
class MachineSupply:
    """Nodes of the site's own; those that nobody needs are off."""

    said: PoolSaid

    def select(self) -> tuple[str, ...]:
        return (f"node:{self.said.nodes}",)

    def slots(self, views: Views, standings: Mapping[str, NodeStanding]) -> list[Slot]:
        found = []
        for name, view in self._nodes(views).items():
            standing = standings.get(name, NodeStanding())
            size = self._size(view)
            if size is not None and not (_is_off(view) and kept_by_others(view, WHO)):
                phase = _phase_of_machine(view, standing)
                found.append(Slot(name, phase, size.name))
        return found

    def asked_s(self, views: Views) -> Mapping[str, float]:
        """Nothing: their attributes are the site's."""
        return {}

    def reconcile(
        self, views: Views, standings: Mapping[str, NodeStanding], writes: PoolWrites
    ) -> None:
        """Nothing: they are declared by others."""

    def refusals(self, views: Views) -> Mapping[str, tuple[InstanceSize, RefusalWords]]:
        """None: one whose power cannot be had is waited for, and then left."""
        return {}

    def fill(self, slot: str, size: str, writes: PoolWrites) -> None:
        writes.desired[f"node:{slot}"] = dict(POWERED)

    def empty(self, slot: str, writes: PoolWrites) -> None:
        off = {node.power.name: Power.OFF.value, node.agent.name: None}
        writes.desired[f"node:{slot}"] = dict(off)

    def _nodes(self, views: Views) -> dict[str, EntityView]:
        return {one.name: one for one in views.values() if one.kind == node.kind.name}

    def _size(self, view: EntityView) -> InstanceSize | None:
        """The dearest size that it has room for."""
        room = capacity_of(view.attributes)
        fitting = [
            one for one in self.said.pool.sizes if room is not None and room.fits(room_of(one))
        ]
        return max(fitting, key=lambda one: (one.price, one.name), default=None)


def _phase_of_instance(view: EntityView, standing: NodeStanding) -> SlotPhase:
    if _is_wanted(view):
        return _phase_of_node(standing) if _is_there(view) else SlotPhase.CREATING
    return SlotPhase.ABSENT if _is_gone(view) else SlotPhase.DESTROYING


def _phase_of_machine(view: EntityView, standing: NodeStanding) -> SlotPhase:
    wanted = view.desired_value(node.power.name)
    if wanted == Power.ON:
        return _phase_of_node(standing)
    if _is_off(view):
        return SlotPhase.ABSENT
    # On, though nobody wants it to be: it serves, until it has been idle for long enough.
    if wanted is None and standing.state is not DutyState.ABSENT:
        return _phase_of_node(standing)
    return SlotPhase.DESTROYING


def _phase_of_node(standing: NodeStanding) -> SlotPhase:
    """Where an instance that is there stands, by what the queue knows of it."""
    match standing.state:
        case DutyState.ABSENT:
            return SlotPhase.BOOTING
        case DutyState.IDLE:
            return SlotPhase.IDLE
        case DutyState.BUSY:
            return SlotPhase.BUSY
        case DutyState.HOLD:
            return SlotPhase.HELD
        case DutyState.FAILED:
            # What it still holds is the queue's to take away.
            return SlotPhase.HELD if standing.holds else SlotPhase.FAILED
        case DutyState.DRAINING | DutyState.DRAINED:
            if standing.wish is None or standing.wish.who != WHO:
                return SlotPhase.HELD
            busy = standing.state is DutyState.DRAINING
            return SlotPhase.DRAINING if busy else SlotPhase.DRAINED


def _is_off(view: EntityView) -> bool:
    return view.known_value(node.power.name) == Power.OFF


def _is_wanted(view: EntityView) -> bool:
    return view.desired_value(instance.exist.name) == Exist.PRESENT.value


def _is_there(view: EntityView) -> bool:
    return view.known_value(instance.exist.name) == Exist.PRESENT.value


def _is_gone(view: EntityView) -> bool:
    return view.known_value(instance.exist.name) == Exist.ABSENT.value


def _was_refused(view: EntityView) -> bool:
    stuck = view.condition is Condition.STUCK and view.error is not None
    return stuck and _is_wanted(view) and _is_gone(view)


def _size_of(view: EntityView) -> str | None:
    size = view.desired_value(instance.size.name)
    return None if size is None else str(size)
