"""What a history left behind, sorted for the oracle: steps, readings and intents by process.

All times are the world's; those of a process, by the clock of its machine, are converted.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from haptera.model.answers.views import EntityView
from haptera.model.changes import CloseIntent, OpenIntent
from haptera.model.effects import Call, Cancel, Work, Write
from haptera.model.entity import EntityId
from haptera.model.events import (
    Alive,
    Answered,
    Ended,
    Enrolled,
    Exited,
    Failed,
    Heard,
    WatchReported,
)
from haptera.model.intent import Intent
from haptera.model.parts import Context, Look, Manifest, Requirement, Step
from haptera.testing.clock import MachineClock
from haptera.testing.disk import Disk
from haptera.testing.machine import ToldValue
from haptera.testing.tape import TapeEntry
from haptera.testing.world import World

MS = 1_000_000
# A reading lives until three looks are overdue.
LOOKS_OVERDUE_MAX = 3


class Told(NamedTuple):
    """What a process told people of an entity."""

    at: int
    process: str
    life: int
    view: EntityView


class Word(NamedTuple):
    """What a life of a process heard of a variable; `value` is None where a look failed.

    `number` is its place on the tape.
    """

    number: int
    told_at: int
    at: int
    life: int
    value: str | None
    watched: bool


@dataclass
class Taken:
    """One step that was called, and how the call ended as far as its process heard of it.

    `clock` is its process's, by which the step's limits count.
    """

    number: int
    at: int
    process: str
    life: int
    call: Call
    step: Step
    intent: Intent
    clock: MachineClock
    ended_at: int | None = None
    outcome: Ended | Failed | None = None

    @property
    def deadline_at(self) -> int:
        """Until when it may be called."""
        assert self.call.deadline_at is not None
        return self.clock.reaches(self.call.deadline_at)

    @property
    def settled_at(self) -> int:
        """From when on it can have no effect any more, as its module declares."""
        over_at = self.deadline_at
        if isinstance(self.outcome, Ended) and self.ended_at is not None:
            over_at = min(over_at, self.ended_at)
        return self.clock.later(over_at, self.step.late_ms * MS)

    @property
    def refused(self) -> bool:
        return isinstance(self.outcome, Failed) and self.outcome.refused


@dataclass
class Evidence:
    """All of one history; `told` was sampled while it went."""

    world: World
    told: Sequence[Told]
    looks: dict[tuple[str, str], Look]
    steps: dict[tuple[str, str], Step]
    read: int = 0
    taken: list[Taken] = field(default_factory=list)
    heard: dict[tuple[str, EntityId, str], list[Word]] = field(default_factory=dict)
    meant: dict[str, Intent] = field(default_factory=dict)
    meant_at: dict[str, tuple[str, int]] = field(default_factory=dict)
    began_at: dict[int, int] = field(default_factory=dict)
    closed_at: dict[str, int] = field(default_factory=dict)
    arrived: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    enrolled: list[tuple[TapeEntry, Enrolled]] = field(default_factory=list)
    really: dict[tuple[EntityId, str], list[ToldValue]] = field(default_factory=dict)

    def keeps(self, process: str, node: str | None) -> bool:
        """Whether a node may speak with this parent."""
        return node is not None and process in self.world.parents_of(node)

    def looks_itself(self, process: str, entity: EntityId, variable: str) -> bool:
        """Whether this process takes the looks at a variable, or is told what they find."""
        keeps = self.keeps(process, entity.node)
        return (keeps or process == entity.node) and any(
            look.context is (Context.PARENT if keeps else Context.SELF)
            for look in self.looks.values()
            if (look.kind, look.at) == (entity.kind, variable)
        )

    def lives_ms(self, kind: str, variable: str) -> int:
        """How long a reading counts, by the most generous look at this variable."""
        return max(
            LOOKS_OVERDUE_MAX * look.every_ms + look.within_ms
            for look in self.looks.values()
            if (look.kind, look.at) == (kind, variable)
        )

    def ways_to_know(self, kind: str, variable: str) -> list[list[Requirement]]:
        """For each look at this variable, which others it requires to be known, and as what."""
        if (kind, variable) == ("node", "agent"):
            return [[Requirement("power", ("on",))]]
        looked_at = {"node.agent", *(look.at for look in self.looks.values())}
        return [
            [one for one in look.requires if one.name in looked_at]
            for look in self.looks.values()
            if (look.kind, look.at) == (kind, variable)
        ]

    def ago(self, life: int, at: int, ns: int) -> int:
        """When the clock of this life of a process showed so many ns less than at this time."""
        return self.world.clocks[life].later(at, -ns)

    def over_at(self, one: Taken, now: int) -> int:
        """When its intent was closed, or the step settled where a successor may not know of it."""
        closed_at = self.closed_at.get(one.intent.id, now)
        disk = self.live_disk(one.process)
        if disk is not None and one.intent.id in disk.opened:
            return closed_at
        return min(closed_at, one.settled_at)

    def live_disk(self, process: str) -> Disk | None:
        """What the process of this name has now, or would have if it were started again."""
        every = [*self.world.parents, *self.world.agents.values()]
        return next((one.disk for one in every if one.name == process), None)

    def truths(self, entity: EntityId, variable: str, since: int, until: int) -> list[ToldValue]:
        """What machines really told of a variable between these times."""
        every = self.really.get((entity, variable), [])
        first = bisect_left(every, since, key=lambda one: one.at)
        return every[first : bisect_right(every, until, key=lambda one: one.at)]

    def cuts_known(self, told: Told, node: str) -> int | None:
        """How often the node had lost power by the last enrolment that this parent knows of.

        It took note of it, or found it in its store when it started.
        """
        taken = [
            one.incarnation
            for entry, one in self.enrolled
            if (entry.process, one.peer) == (told.process, node) and entry.at <= told.at
        ]
        began_at = self.began_at[told.life]
        known = [
            one
            for one in self.world.boots
            if one.node == node and (one.at < began_at or one.incarnation in taken)
        ]
        return known[-1].cuts if known else None

    def of_life(self, life: int) -> list[TapeEntry]:
        """All that one start of a process was told and asked for."""
        return [entry for entry in self.world.tape if entry.life == life]

    def cuts(self, node: str, at: int) -> int:
        """How often the node had lost its power when the agent that ran then enrolled."""
        boots = [one for one in self.world.boots if one.node == node and one.at <= at]
        return boots[-1].cuts if boots else 0

    def readings(self, process: str, entity: EntityId, variable: str) -> list[Word]:
        return self.heard.get((process, entity, variable), [])

    def readings_until(self, one: Taken, variable: str) -> list[Word]:
        """What its own life had heard of the variable when the step was called.

        Not what it heard in the same instant, but after that.
        """
        every = self.readings(one.process, one.call.entity, variable)
        return [heard for heard in every if heard.life == one.life and heard.number < one.number]


def gather(world: World, manifests: Sequence[Manifest], told: Sequence[Told]) -> Evidence:
    """Read the tape once."""
    evidence = Evidence(
        world,
        # What a module is, its supervisor tells; machines know nothing of it.
        [one for one in told if one.view.kind != "module"],
        {(look.module, look.name): look for one in manifests for look in one.looks},
        {(step.module, step.name): step for one in manifests for step in one.steps},
    )
    for machine in world.machines.values():
        for reading in sorted(machine.readings, key=lambda one: one.at):
            key = reading.entity, reading.variable
            evidence.really.setdefault(key, []).append(reading)
    open_calls: dict[tuple[int, int], Taken | Call] = {}
    for entry in world.tape:
        evidence.read += 1
        _read(evidence, open_calls, entry)
    return evidence


def _read(  # noqa: C901, PLR0912  one branch a sort of entry
    evidence: Evidence, under_way: dict[tuple[int, int], Taken | Call], entry: TapeEntry
) -> None:
    life, what = entry.life, entry.what
    clock = evidence.world.clocks[life]
    evidence.began_at.setdefault(life, entry.at)
    match what:
        case Call():
            under_way[life, what.id] = _called(evidence, entry, what)
        case Cancel(call):
            _cancelled(evidence, under_way.pop((life, call), None), entry)
        case WatchReported(call):
            _answered(evidence, under_way.get((life, call)), entry)
        case Answered(call) | Ended(call) | Failed(call):
            _answered(evidence, under_way.pop((life, call), None), entry)
        case Exited(module, _, process):
            # Whatever is still said of its calls is said by the dead.
            for key in [key for key, one in under_way.items() if key[0] == life]:
                if _given_to(under_way[key]) == (module, process):
                    del under_way[key]
        case Write():
            _written(evidence, entry, what)
        case Heard(peer, arrived_at=arrived_at):
            evidence.arrived.setdefault((life, peer), []).append(clock.reaches(arrived_at))
        case Alive(peers, arrived_at):
            for peer in peers:
                evidence.arrived.setdefault((life, peer), []).append(clock.reaches(arrived_at))
        case Enrolled():
            evidence.enrolled.append((entry, what))
        case _:
            pass


def _given_to(one: Taken | Call) -> tuple[str, int]:
    call = one.call if isinstance(one, Taken) else one
    return call.module, call.process


def _called(evidence: Evidence, entry: TapeEntry, call: Call) -> Taken | Call:
    if call.work is not Work.STEP or call.intent is None:
        return call
    step, intent = evidence.steps[call.module, call.part], evidence.meant[call.intent]
    clock = evidence.world.clocks[entry.life]
    taken = Taken(evidence.read, entry.at, entry.process, entry.life, call, step, intent, clock)
    evidence.taken.append(taken)
    return taken


def _answered(evidence: Evidence, one: Taken | Call | None, entry: TapeEntry) -> None:
    if isinstance(one, Call):
        _hear(evidence, one, entry)
    elif one is not None and isinstance(entry.what, Ended | Failed):
        one.ended_at, one.outcome = entry.at, entry.what


def _written(evidence: Evidence, entry: TapeEntry, write: Write) -> None:
    for change in write.changes:
        match change:
            case OpenIntent(intent):
                began_at = evidence.world.clocks[entry.life].reaches(intent.began_at)
                evidence.meant[intent.id] = msgspec.structs.replace(intent, began_at=began_at)
                evidence.meant_at[intent.id] = entry.process, entry.at
            case CloseIntent(id):
                evidence.closed_at.setdefault(id, entry.at)
            case _:
                pass


def _cancelled(evidence: Evidence, one: Taken | Call | None, entry: TapeEntry) -> None:
    """A look that is given up says as much as one that fails; so it is if nobody answered it."""
    if isinstance(one, Call) and one.work is Work.LOOK:
        _hear(evidence, one, entry)


def _hear(evidence: Evidence, call: Call, entry: TapeEntry) -> None:
    if call.work not in (Work.LOOK, Work.WATCH):
        return  # a gate, which tells nothing
    look = evidence.looks[call.module, call.part]
    value, at = None, entry.at
    if isinstance(entry.what, Answered | WatchReported):
        value = entry.what.value
        at = evidence.world.clocks[entry.life].reaches(entry.what.at)
    heard = Word(evidence.read, entry.at, at, entry.life, value, call.work is Work.WATCH)
    if not (heard.watched and value is None):
        key = entry.process, call.entity, look.at
        evidence.heard.setdefault(key, []).append(heard)


def pairs(taken: Sequence[Taken]) -> Iterator[tuple[Taken, Taken]]:
    """Each step with the next one on the same entity, by whichever life of the same process."""
    last: dict[tuple[str, EntityId], Taken] = {}
    for one in taken:
        key = one.process, one.call.entity
        if key in last:
            yield last[key], one
        last[key] = one
