"""A model of everything that modules reach: values, what declared steps make of them, and when."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from haptera.kinds.node import Agent, Busy, Power, agent, busy, power
from haptera.model.declared.schema import Applied, Kind
from haptera.model.effects import Call, Work
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Answered, Ended, Failed, WatchReported
from haptera.model.parts import Look, Part, Step
from haptera.testing.clock import Clock
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


@dataclass
class NodeFaults:
    """The faults of one node: `mute` modules never answer, `barren` ones change nothing.

    A `bare` one boots, and no agent comes up.
    """

    mute: set[str] = field(default_factory=set)
    barren: set[str] = field(default_factory=set)
    bare: bool = False

    def restore(self) -> None:
        """Its agent comes up from the next boot on."""
        self.bare = False


class Actual:
    """All entities as they really are; `of_nodes` are the paths of parts that need an agent.

    A step makes its declared changes come true once its time has passed, a look reads them. What
    ran on a node is gone with its power. Where a job runs, a gate refuses.
    """

    def __init__(
        self,
        clock: Clock,
        kinds: Mapping[str, Kind],
        parts: Iterable[Part],
        of_nodes: frozenset[str],
        pace: PartTimes,
    ) -> None:
        self.clock = clock
        self.wishes: Wishes
        self.done: list[Doing] = []
        self.values: dict[EntityId, Values] = {}
        self.broken: dict[str, NodeFaults] = {}
        self.refusals = 0
        self._kinds = kinds
        self._parts = {one.path: one for one in parts}
        self._of_nodes = of_nodes
        self._pace = pace
        self._here: dict[str, list[EntityId]] = {}
        self._cuts: dict[str, int] = {}
        self._watches: dict[EntityId, dict[str, tuple[int, Answer]]] = {}
        self._lasting = {
            (one.kind, one.at)
            for one in self._parts.values()
            if isinstance(one, Look) and one.path not in of_nodes
        }

    def put(self, entity: EntityId, values: Values) -> None:
        """Set the values of an entity, which exists from now on."""
        self.values[entity] = values
        if entity.node is not None and entity != node_id(entity.node):
            self._here.setdefault(entity.node, []).append(entity)

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
        broken = self.broken.get(call.entity.node or "")
        if broken is not None and call.module in broken.mute:
            return
        part = self._parts[path]
        takes_ns = self._takes_ns(part)
        if isinstance(part, Look):
            self.clock.after(takes_ns, self._look, part, call, answer)
        else:
            node = call.entity.node
            cuts = self._cuts.get(node, 0) if node is not None and path in self._of_nodes else None
            digests = {
                one.variable: self.wishes.digest(call.entity, one.variable)
                for one in part.changes
                if self._is_applied(call.entity, one.variable)
            }
            begun = self.clock.now
            self.clock.after(takes_ns, self._step, part, call, answer, begun, cuts, digests)

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
        if look.path in self._of_nodes and not self._has_agent(entity.node):
            return None
        value = self.values[entity].get(look.at)
        if self._is_applied(entity, look.at):
            return Applied.STALE if value is None else value
        if value is None and look.at != agent.name:
            value = self._resting(entity, look)
        return value if value in look.outcomes else None

    def _resting(self, entity: EntityId, look: Look) -> str | None:
        """The initial value of something untouched: its first outcome but the unknown."""
        variable = self._kinds[entity.kind].variable(look.at)
        assert variable is not None
        known = [one for one in variable.values if one != variable.unknown]
        return next((one for one in known if one in look.outcomes), None)

    def _step(
        self,
        step: Step,
        call: Call,
        answer: Answer,
        begun: int,
        cuts: int | None,
        digests: Mapping[str, str],
    ) -> None:
        node = call.entity.node
        if cuts is not None and cuts != self._cuts.get(node or "", 0):
            return  # Its process went with the node.
        broken = self.broken.get(node or "")
        fails = self.clock.chance(
            f"fails/{step.path}", "step failed", self._pace.failing.get(step.path, 0.0)
        )
        barren = broken is not None and call.module in broken.barren
        self.done.append(
            Doing(call.entity, step.path, begun, self.clock.now, step.disruptive, fails or barren)
        )
        if fails:
            answer(Failed(call.id, "failed, as it does at times"))
            return
        for change in () if barren else step.changes:
            variable = self._kinds[call.entity.kind].variable(change.variable)
            assert variable is not None
            target: str | None = change.target
            if target == variable.unknown:
                target = None
            elif change.variable in digests:
                target = digests[change.variable] if target == Applied.CURRENT else Applied.STALE
            self.set(call.entity, change.variable, target)
        answer(Ended(call.id))

    def _power(self, entity: EntityId, value: str | None) -> None:
        node = entity.name
        self._cuts[node] = self._cuts.get(node, 0) + 1
        if value == Power.ON:
            boot_ns = self._pace.usual_ns.get(BOOTING, BOOT_MS * MS)
            takes = int(boot_ns * self.clock.rng(f"boot/{node}").triangular(FASTEST, SLOWEST, 1))
            self.clock.after(takes, self._booted, entity, self._cuts[node])
            return
        for one in self._here.get(node, ()):
            for name in [*self.values[one]]:
                if (one.kind, name) not in self._lasting:
                    self.set(one, name, None)
        for name in (agent.name, busy.name):
            self.set(entity, name, None)

    def _booted(self, entity: EntityId, cuts: int) -> None:
        if self._cuts[entity.name] == cuts and not self._bare(entity.name):
            self.set(entity, agent.name, Agent.UP)

    def _bare(self, node: str) -> bool:
        return node in self.broken and self.broken[node].bare

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
        found = self._kinds[entity.kind].variable(variable)
        return found is not None and found.values is Applied
