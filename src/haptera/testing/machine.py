"""A simulated machine: power behind a BMC, an agent that boots with it, services that run on it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from haptera.model.effects import Call, Work
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Answered, Ended, Failed, Sighted
from haptera.testing.clock import Clock

MS = 1_000_000
# The latest effect that the module of power declares.
LATE_MS = 2_000

Answer = Callable[[Answered | Ended | Failed | Sighted], None]


@dataclass
class Command:
    """One power command as the BMC's own file has it; `done_at` is None until it took effect.

    `before` is how power was when it came in.
    """

    intent: str
    power: str
    at: int
    before: str
    done_at: int | None = None


@dataclass
class Read:
    """One look at power: when it was begun, what it told and when; `lied` where that was wrong."""

    at: int
    value: str
    told_at: int
    lied: bool


class Reading(NamedTuple):
    """A value that was really told of this machine, as of then; `cuts` counts its power losses."""

    entity: EntityId
    variable: str
    value: str
    at: int
    cuts: int


@dataclass
class Trouble:
    """How badly a machine behaves, within what its modules declare; shares between 0 and 1.

    `silent` calls are never answered, of those that are done `fatal` ones kill the module before
    it answers; `idle` commands are accepted and come to nothing; looks are `slow`, fail, or lie;
    reports of the watch are `stale`.
    """

    silent: float = 0.0
    fatal: float = 0.0
    idle: float = 0.0
    slow: float = 0.0
    failing: float = 0.0
    lying: float = 0.0
    stale: float = 0.0


@dataclass
class Machine:
    """What is really there. `booted` is told when the machine has booted, or lost its power."""

    clock: Clock
    name: str
    booted: Callable[[str], None]
    stopped: Callable[[str], None]
    refuses: str | None = None
    power: str = "off"
    cuts: int = 0
    commands: list[Command] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    services: dict[str, str] = field(default_factory=dict)
    starts: list[tuple[str, int]] = field(default_factory=list)
    trouble: Trouble = field(default_factory=Trouble)
    reports_off: list[int] = field(default_factory=list)
    _watch: tuple[int, Answer] | None = None

    def handle(self, call: Call, answer: Answer, died: Callable[[], None]) -> None:
        """What the module of this call would do with the real machine; it may die over it."""
        if call.work is Work.WATCH:
            if call.part == "look_power":
                self._watch = call.id, answer
                self._report()
            return
        if self._draw("silent", self.trouble.silent):
            answer = _nobody
        elif self._draw("fatal", self.trouble.fatal):
            answer = _dying(died)
        delay_ns = self._delay_ns(1, 3_000 if self._draw("slow", self.trouble.slow) else 40)
        if call.deadline_at is not None and self.clock.now + delay_ns > call.deadline_at:
            self.clock.after(delay_ns, answer, Failed(call.id, "too late to begin", refused=True))
            return
        action = {
            "look_power": self._look_power,
            "switch_on": self._switch_on,
            "switch_off": self._switch_off,
            "look_run": self._look_run,
            "look_applied": self._look_applied,
            "start": self._start,
            "replace": self._start,
            "stop": self._stop,
        }[call.part]
        self.clock.after(delay_ns, action, call, answer)

    def cut(self) -> None:
        """All processes of the machine are gone."""
        self.power = "off"
        self.cuts += 1
        self.clock.happened["power lost"] += 1
        self.services.clear()
        self.stopped(self.name)
        self._report()

    def _look_power(self, call: Call, answer: Answer) -> None:
        at = self.clock.now
        if self._draw("failing", self.trouble.failing):
            answer(Failed(call.id, "no route to the BMC"))
            return
        other = {"on": "off", "off": "on"}[self.power]
        lies = self._draw("lying", self.trouble.lying)
        value = other if lies else self.power
        delay_ns = self._delay_ns(0, 1_500) if self._draw("slow", self.trouble.slow) else 0
        self.reads.append(Read(at, value, at + delay_ns, lies))
        self._tell(node_id(self.name), "power", value, at)
        self.clock.after(delay_ns, answer, Answered(call.id, value, at))

    def _report(self) -> None:
        """Tell the watch, sooner or later; the module takes the time when it hears of it."""
        self.clock.after(self._late_ns(), self._sight, self.power)

    def _sight(self, power: str) -> None:
        if self._watch is not None:
            call, answer = self._watch
            self._tell(node_id(self.name), "power", power, self.clock.now)
            if power == "off":
                self.reports_off.append(self.clock.now)
            answer(Sighted(call, power, self.clock.now))

    def _late_ns(self) -> int:
        return self._delay_ns(500, 8_000) if self._draw("stale", self.trouble.stale) else 2 * MS

    def _switch_on(self, call: Call, answer: Answer) -> None:
        self._command(call, answer, "on")

    def _switch_off(self, call: Call, answer: Answer) -> None:
        self._command(call, answer, "off")

    def _command(self, call: Call, answer: Answer, power: str) -> None:
        assert call.intent is not None
        if self.refuses is not None:
            answer(Failed(call.id, self.refuses, refused=True))
            return
        command = Command(call.intent, power, self.clock.now, self.power)
        self.commands.append(command)
        if not self._draw("idle", self.trouble.idle):
            self.clock.after(self._delay_ns(100, LATE_MS), self._effect, command)
        answer(Ended(call.id))

    def _effect(self, command: Command) -> None:
        command.done_at = self.clock.now
        if command.power == "off":
            self.cut()
        elif self.power == "off":
            self.power = "on"
            self._report()
            self.clock.after(self._delay_ns(300, 1_500), self._boot, self.cuts)

    def _boot(self, cuts: int) -> None:
        if self.power == "on" and cuts == self.cuts:
            self.booted(self.name)

    def _look_run(self, call: Call, answer: Answer) -> None:
        value = "running" if call.entity.name in self.services else "stopped"
        self._tell(call.entity, "run", value, self.clock.now)
        answer(Answered(call.id, value, self.clock.now))

    def _look_applied(self, call: Call, answer: Answer) -> None:
        digest = self.services.get(call.entity.name)
        if digest is None:
            answer(Failed(call.id, "does not run"))
        else:
            self._tell(call.entity, "applied", digest, self.clock.now)
            answer(Answered(call.id, digest, self.clock.now))

    def _start(self, call: Call, answer: Answer) -> None:
        assert call.intent is not None
        self.starts.append((call.intent, self.clock.now))
        self.services[call.entity.name] = call.digest
        answer(Ended(call.id))

    def _stop(self, call: Call, answer: Answer) -> None:
        self.services.pop(call.entity.name, None)
        answer(Ended(call.id))

    def _tell(self, entity: EntityId, variable: str, value: str, at: int) -> None:
        self.readings.append(Reading(entity, variable, value, at, self.cuts))

    def _draw(self, trouble: str, share: float) -> bool:
        return self.clock.chance(f"machine/{self.name}", f"machine {trouble}", share)

    def _delay_ns(self, low_ms: int, high_ms: int) -> int:
        return self.clock.rng(f"machine/{self.name}").randrange(low_ms, high_ms) * MS


def _nobody(_: Answered | Ended | Failed | Sighted) -> None:
    """The answer never arrives."""


def _dying(died: Callable[[], None]) -> Answer:
    return lambda _: died()
