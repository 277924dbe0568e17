"""A model of everything that modules reach: values, what declared steps make of them, and when."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

from haptera.kinds import system
from haptera.kinds.node import Agent, Busy, Power, agent, busy, power
from haptera.model.declared.schema import Applied, Variable
from haptera.model.effects import Call, Work
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Answered, Ended, Failed, WatchReported
from haptera.model.parts import Look, Part, Step
from haptera.testing.clock import Clock
from haptera.testing.folded_catalog import FoldedCatalog
from haptera.testing.machine import Answer

MS: Final = 1_000_000
# How long a look takes that was never measured, and a step: no longer than this, or a tenth of
# what it may take.
LOOK_MS: Final = 50
STEP_MS_MAX: Final = 10_000
# The boot time of a node where none was measured.
BOOT_MS: Final = 60_000
# A part takes between half and double of what it usually does, that mostly.
FASTEST, SLOWEST = 0.5, 2.0
# The path under which the core measures how long a node takes until its agent is heard.
BOOTING: Final = "sync.hear"

Values = dict[str, str]


class Doing(NamedTuple):
    """A step from its call to its end, in ns of the world's time."""

    entity: EntityId
    part: str
    began_at: int
    ended_at: int
    disruptive: bool
    failed: bool


class Wishes(Protocol):
    """The desired state, as far as a module receives it."""

    def digest(self, entity: EntityId, variable: str) -> str:
        """The digest of the plain data that this variable compares."""

    def contents(self, entity: EntityId, variable: str) -> str:
        """The same for the values alone: what is in force, whichever of them it is called."""


@dataclass
class PartTimes:
    """Durations of parts, in ns, and the share of steps that fails, by path; of a real cluster."""

    usual_ns: Mapping[str, int] = field(default_factory=dict)
    failing: Mapping[str, float] = field(default_factory=dict)

    def typical_ns(self, part: Part) -> int:
        """The duration of a part that was measured, or else what its declaration suggests."""
        if (usual := self.usual_ns.get(part.path)) is not None:
            return usual
        most = LOOK_MS if isinstance(part, Look) else STEP_MS_MAX
        return min(most, part.within_ms // 10) * MS


class NodeFault(StrEnum):
    """A fault of a whole node, as people name it."""

    NO_AGENT = "no agent"  # it boots, and no agent comes up
    BAD_IMAGE = "image is bad"  # it refuses each image that it is to run


@dataclass
class ModelledNode:
    """One node: what is on it, how often its power changed, and its faults.

    `mute` modules never answer, `barren` ones change nothing.
    """

    here: list[EntityId] = field(default_factory=list)
    cuts: int = 0
    mute: set[str] = field(default_factory=set)
    barren: set[str] = field(default_factory=set)
    faults: set[NodeFault] = field(default_factory=set)


class _Running(NamedTuple):
    """A step under way: `cuts` of its node when it began, if it needs the node's power."""

    step: Step
    call: Call
    answer: Answer
    begun: int
    cuts: int | None
    contents: Mapping[str, str]


class Actual:
    """All entities as they really are.

    A step makes its declared changes come true once its time has passed, a look reads them. What
    ran on a node is gone with its power. Where a job runs, a gate refuses. Of what is compared by
    its digest, the contents in force are kept.
    """

    def __init__(self, clock: Clock, catalog: FoldedCatalog, wishes: Wishes, pace: PartTimes):
        self.clock = clock
        self.values: dict[EntityId, Values] = {}
        self.nodes: dict[str | None, ModelledNode] = defaultdict(ModelledNode)
        self.done: list[Doing] = []
        self.refusals = 0
        # On which of them disruptive steps are under way, and how many.
        self.disrupted: Counter[EntityId] = Counter()
        self._catalog = catalog
        self._wishes = wishes
        self._pace = pace
        self._parts = {one.path: one for one in catalog.parts()}
        self._watches: dict[EntityId, dict[str, tuple[int, Answer]]] = {}

    def put(self, entity: EntityId, values: Values) -> None:
        """Set the values of an entity, which exists from now on; a node that is on boots."""
        self.values[entity] = values
        if entity.node is not None and entity != node_id(entity.node):
            self.nodes[entity.node].here.append(entity)
        elif values.get(power.name) == Power.ON and agent.name not in values:
            self._boot(entity)

    def handle(self, call: Call, answer: Answer, died: Callable[[], None]) -> None:
        """Do what a module that keeps to its declaration would do."""
        if call.entity not in self.values:
            self.put(call.entity, {})
        if call.work in (Work.HOLD, Work.RELEASE):
            self.clock.after(LOOK_MS * MS, self._gate, call, answer)
            return
        path = f"{call.module}.{call.part}"
        if call.work is Work.WATCH:
            self._watches.setdefault(call.entity, {})[path] = call.id, answer
            return
        node = self.nodes[call.entity.node]
        if call.module in node.mute:
            return
        part = self._parts[path]
        if isinstance(part, Look):
            self.clock.after(self._takes_ns(part), self._look, part, call, answer)
            return
        cuts = node.cuts if path in self._catalog.of_nodes else None
        compared = [one.variable for one in part.changes] + [system.refused.name]
        contents = {
            name: self._wishes.contents(call.entity, name)
            for name in compared
            if self._is_applied(call.entity, name)
        }
        self.disrupted[call.entity] += part.disruptive
        running = _Running(part, call, answer, self.clock.now, cuts, contents)
        held = self.values[call.entity]
        # Nothing to do, as for an image that lies there under its other name.
        idle = part.changes and all(
            held.get(one.variable) == contents.get(one.variable, one.target) for one in part.changes
        )
        self.clock.after(LOOK_MS * MS if idle else self._takes_ns(part), self._step, running)

    def set(self, entity: EntityId, variable: str, value: str | None) -> None:
        """Set a value, and report it to its watches. None: it has no value."""
        values = self.values.setdefault(entity, {})
        if values.get(variable) == value:
            return
        if value is None:
            values.pop(variable, None)
        else:
            values[variable] = value
        if entity.kind == "node" and variable == power.name:
            self._power(entity, value)
        self._report(entity, variable)

    def value(self, entity: EntityId, variable: Variable[Any]) -> str:
        """The real value of a variable, read by anybody or not."""
        value = self.values.get(entity, {}).get(variable.name)
        if variable.values is Applied:
            is_current = value == self._wishes.contents(entity, variable.name)
            return Applied.CURRENT if is_current else Applied.STALE
        return str(variable.unknown) if value is None else value

    def cut(self, node: str) -> None:
        """Take a node's power from it, as a failing supply does."""
        self.set(node_id(node), power.name, Power.OFF)

    def _takes_ns(self, part: Part) -> int:
        usual = self._pace.typical_ns(part)
        return int(usual * self.clock.rng(f"pace/{part.path}").triangular(FASTEST, SLOWEST, 1))

    def _look(self, look: Look, call: Call, answer: Answer) -> None:
        value = self._read(look, call.entity)
        if value is None:
            answer(Failed(call.id, f"{look.at} cannot be read"))
        else:
            answer(Answered(call.id, value, self.clock.now))

    def _read(self, look: Look, entity: EntityId) -> str | None:
        """The value as a module tells it; None where none of the outcomes holds."""
        if look.path in self._catalog.of_nodes and not self._has_agent(entity.node):
            return None
        value = self.values[entity].get(look.at)
        if self._is_applied(entity, look.at):
            is_current = value == self._wishes.contents(entity, look.at)
            return self._wishes.digest(entity, look.at) if is_current else Applied.STALE
        if value is None and look.at != agent.name:
            value = self._resting(entity, look)
        return value if value in look.outcomes else None

    def _resting(self, entity: EntityId, look: Look) -> str | None:
        """The initial value of something untouched: its first outcome but the unknown."""
        variable = self._catalog.kinds[entity.kind].variable(look.at)
        assert variable is not None
        known = [one for one in variable.values if one != variable.unknown]
        return next((one for one in known if one in look.outcomes), None)

    def _step(self, one: _Running) -> None:
        step, entity, node = one.step, one.call.entity, self.nodes[one.call.entity.node]
        self.disrupted[entity] -= step.disruptive
        if one.cuts is not None and one.cuts != node.cuts:
            return  # Its process went with the node.
        fails = self.clock.chance(
            f"fails/{step.path}", "step failed", self._pace.failing.get(step.path, 0.0)
        )
        runs = (system.kind.name, system.applied.name)
        unfit = NodeFault.BAD_IMAGE in node.faults and runs in {
            (step.kind, change.variable) for change in step.changes
        }
        barren = unfit or one.call.module in node.barren
        self.done.append(
            Doing(entity, step.path, one.begun, self.clock.now, step.disruptive, fails or barren)
        )
        if fails:
            one.answer(Failed(one.call.id, "failed, as it does at times"))
            return
        if unfit:
            self.set(entity, system.refused.name, one.contents[system.refused.name])
        for change in () if barren else step.changes:
            variable = self._catalog.kinds[entity.kind].variable(change.variable)
            assert variable is not None
            target: str | None = change.target
            if target == variable.unknown:
                target = None
            elif change.variable in one.contents:
                current = change.target == Applied.CURRENT
                target = one.contents[change.variable] if current else Applied.STALE
            self.set(entity, change.variable, target)
        one.answer(Ended(one.call.id))

    def _power(self, entity: EntityId, value: str | None) -> None:
        node = self.nodes[entity.name]
        node.cuts += 1
        if value == Power.ON:
            boot_ns = self._pace.usual_ns.get(BOOTING, BOOT_MS * MS)
            takes = int(
                boot_ns * self.clock.rng(f"boot/{entity.name}").triangular(FASTEST, SLOWEST, 1)
            )
            self.clock.after(takes, self._booted, entity, node.cuts)
            return
        for one in node.here:
            for name in [*self.values[one]]:
                if (one.kind, name) not in self._catalog.lasting:
                    self.set(one, name, None)
        for name in (agent.name, busy.name):
            self.set(entity, name, None)

    def _boot(self, entity: EntityId) -> None:
        boot_ns = self._pace.usual_ns.get(BOOTING, BOOT_MS * MS)
        rng = self.clock.rng(f"boot/{entity.name}")
        takes_ns = int(boot_ns * rng.triangular(FASTEST, SLOWEST, 1))
        self.clock.after(takes_ns, self._booted, entity, self.nodes[entity.name].cuts)

    def _booted(self, entity: EntityId, cuts: int) -> None:
        node = self.nodes[entity.name]
        if node.cuts == cuts and NodeFault.NO_AGENT not in node.faults:
            self.set(entity, agent.name, Agent.UP)

    def _has_agent(self, node: str | None) -> bool:
        return node is None or self.values.get(node_id(node), {}).get(agent.name) == Agent.UP

    def _report(self, entity: EntityId, variable: str) -> None:
        for path, (call, answer) in self._watches.get(entity, {}).items():
            look = self._parts[path]
            if isinstance(look, Look) and look.at == variable:
                value = self._read(look, entity)
                if value is not None:
                    self.clock.after(
                        LOOK_MS * MS, answer, WatchReported(call, value, self.clock.now)
                    )

    def _gate(self, call: Call, answer: Answer) -> None:
        jobs = self.values[call.entity].get(busy.name) == Busy.BUSY
        if call.work is Work.HOLD and jobs:
            self.refusals += 1
            answer(Failed(call.id, "a job runs", refused=True))
        else:
            answer(Ended(call.id))

    def _is_applied(self, entity: EntityId, variable: str) -> bool:
        found = self._catalog.kinds[entity.kind].variable(variable)
        return found is not None and found.values is Applied
