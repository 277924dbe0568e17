"""A simulated machine: power behind a BMC, an agent that boots with it, services and jobs on it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from haptera.model.declared.schema import Applied
from haptera.model.effects import Call, Work
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Answered, Ended, Failed, WatchReported
from haptera.testing.clock import Clock

MS = 1_000_000
# The latest effect that the module of power declares.
LATE_MS = 2_000
# How often the module of jobs looks whether there are any.
JOBS_SEEN_MS = 500
# How long the replacement of a system takes at most.
FLIP_MS_MAX = 4_000
# How long a job runs at most that waited at a gate.
JOB_MS_MAX = 20_000
# What is done to a machine from without; all else is done on it, and ends with it.
FROM_WITHOUT = frozenset(("look_power", "switch_on", "switch_off", "force_off"))

Answer = Callable[[Answered | Ended | Failed | WatchReported], None]


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
class PowerReading:
    """One look at power: when it was begun, its answer and when; `lied` where that was wrong."""

    at: int
    value: str
    told_at: int
    lied: bool


class Killed(NamedTuple):
    """A job that ended when power was cut: by the command of this intent, or by nobody of ours."""

    at: int
    intent: str | None


class Outage(NamedTuple):
    """From when to when a system was away for another image's sake."""

    system: str
    began_at: int
    ended_at: int


class ToldValue(NamedTuple):
    """A value that was really read of this machine, as of then; `cuts` counts its power losses."""

    entity: EntityId
    variable: str
    value: str
    at: int
    cuts: int


@dataclass
class Trouble:
    """How badly a machine behaves, within what its modules declare; shares between 0 and 1.

    `silent` calls are never answered, of those that are done `fatal` ones kill the module before
    it answers; `idle` commands are accepted and come to nothing; looks are `slow`, fail, or lie
    (of power); reports of the watch of power are `stale`. A gate may be all that a look may; where
    it is `crowded`, a job waits to be let in whenever it opens.
    """

    silent: float = 0.0
    fatal: float = 0.0
    idle: float = 0.0
    slow: float = 0.0
    failing: float = 0.0
    lying: float = 0.0
    stale: float = 0.0
    crowded: float = 0.0


@dataclass
class Machine:
    """The real machine. `booted` is called when it has booted, or lost its power.

    A machine boots with its `gate` closed; while it is open, `jobs` may start. What a command does
    comes about within `late_ms`.
    """

    clock: Clock
    name: str
    booted: Callable[[str], None]
    stopped: Callable[[str], None]
    refuses: str | None = None
    power: str = "off"
    cuts: int = 0
    commands: list[Command] = field(default_factory=list)
    reads: list[PowerReading] = field(default_factory=list)
    readings: list[ToldValue] = field(default_factory=list)
    services: dict[str, str] = field(default_factory=dict)
    staged: dict[str, str] = field(default_factory=dict)
    starts: list[tuple[str, int]] = field(default_factory=list)
    trouble: Trouble = field(default_factory=Trouble)
    late_ms: int = LATE_MS
    reports_off: list[int] = field(default_factory=list)
    gate: str = "closed"
    jobs: int = 0
    killed: list[Killed] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    # Services that end as soon as they are started.
    breaks: set[str] = field(default_factory=set)
    _watches: dict[str, tuple[int, Answer]] = field(default_factory=dict)

    def handle(self, call: Call, answer: Answer, died: Callable[[], None]) -> None:
        """What the module of this call would do with the real machine; it may die over it."""
        if call.work is Work.WATCH:
            self._watches[call.part] = call.id, answer
            if call.part == "look_power":
                self._report()
            elif call.part == "look_busy":
                self._report_busy()
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
            "force_off": self._switch_off,
            "look_run": self._look_run,
            "look_applied": self._look_applied,
            "start": self._start,
            "replace": self._start,
            "stop": self._stop,
            "look_staged": self._look_staged,
            "stage": self._stage,
            "look_refused": self._look_refused,
            "flip": self._flip,
            "look_busy": self._look_busy,
            "hold": self._hold,
            "release": self._release,
        }[call.part]
        life = None if call.part in FROM_WITHOUT else self.cuts
        self.clock.after(delay_ns, self._act, life, action, call, answer)

    def cut(self, intent: str | None = None) -> None:
        """All processes of the machine are gone: by the command of this intent, or just so."""
        self.power = "off"
        self.cuts += 1
        self.clock.happened["power lost"] += 1
        self.killed += [Killed(self.clock.now, intent)] * self.jobs
        self.jobs = 0
        self.gate = "closed"
        now = self.clock.now
        self.outages = [one._replace(ended_at=min(one.ended_at, now)) for one in self.outages]
        self._watches.pop("look_busy", None)
        self.services.clear()
        self.staged.clear()
        self.stopped(self.name)
        self._report()

    def start_job(self) -> bool:
        """Let a job begin; tells whether the gate let it in."""
        if self.power != "on" or self.gate != "open":
            return False
        self.jobs += 1
        self._report_busy()
        return True

    def end_job(self) -> None:
        """One of the jobs is over by itself."""
        assert self.jobs > 0, f"no job runs on {self.name}"
        self.jobs -= 1
        self._report_busy()

    def _act(
        self, life: int | None, action: Callable[[Call, Answer], None], call: Call, answer: Answer
    ) -> None:
        """What is done on a machine is done in one life of it, between two losses of power."""
        if life in (None, self.cuts):
            action(call, answer)

    def _look_power(self, call: Call, answer: Answer) -> None:
        at = self.clock.now
        if self._draw("failing", self.trouble.failing):
            answer(Failed(call.id, "no route to the BMC"))
            return
        other = {"on": "off", "off": "on"}[self.power]
        lies = self._draw("lying", self.trouble.lying)
        value = other if lies else self.power
        delay_ns = self._delay_ns(0, 1_500) if self._draw("slow", self.trouble.slow) else 0
        self.reads.append(PowerReading(at, value, at + delay_ns, lies))
        self._tell(node_id(self.name), "power", value, at)
        self.clock.after(delay_ns, answer, Answered(call.id, value, at))

    def _report(self) -> None:
        """Tell the watch, sooner or later; the module takes the time when it hears of it."""
        self.clock.after(self._late_ns(), self._sight, self.power)

    def _sight(self, power: str) -> None:
        if "look_power" in self._watches:
            call, answer = self._watches["look_power"]
            self._tell(node_id(self.name), "power", power, self.clock.now)
            if power == "off":
                self.reports_off.append(self.clock.now)
            answer(WatchReported(call, power, self.clock.now))

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
            self.clock.after(self._delay_ns(100, self.late_ms), self._effect, command)
        answer(Ended(call.id))

    def _effect(self, command: Command) -> None:
        command.done_at = self.clock.now
        if command.power == "off":
            self.clock.happened["power taken by a step"] += self.power == "on"
            self.cut(command.intent)
        elif self.power == "off":
            self.start_up()

    def reset(self) -> None:
        """It loses its power, and has it again at once: nobody of ours did that."""
        self.cut()
        self.start_up()

    def start_up(self) -> None:
        """It has its power again, and boots."""
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
        if call.module == "system" and digest is not None:
            digest = call.digest if digest == call.values["image"] else Applied.STALE
        if digest is None:
            answer(Failed(call.id, "does not run"))
        else:
            self._tell(call.entity, "applied", digest, self.clock.now)
            answer(Answered(call.id, digest, self.clock.now, f"in force on {self.name}"))

    def _start(self, call: Call, answer: Answer) -> None:
        assert call.intent is not None
        self.starts.append((call.intent, self.clock.now))
        image = call.values.get("image")
        self.services[call.entity.name] = call.digest if image is None else str(image)
        if call.entity.name in self.breaks:
            del self.services[call.entity.name]
        answer(Ended(call.id))

    def _stop(self, call: Call, answer: Answer) -> None:
        self.services.pop(call.entity.name, None)
        answer(Ended(call.id))

    def _look_staged(self, call: Call, answer: Answer) -> None:
        image = self.staged.get(call.entity.name)
        staged = call.digest if image == call.values["image"] else Applied.STALE
        answer(Answered(call.id, staged, self.clock.now))

    def _stage(self, call: Call, answer: Answer) -> None:
        self.staged[call.entity.name] = str(call.values["image"])
        answer(Ended(call.id))

    def _look_refused(self, call: Call, answer: Answer) -> None:
        answer(Answered(call.id, Applied.STALE, self.clock.now))

    def _flip(self, call: Call, answer: Answer) -> None:
        """It takes its time, and ends before that if power does."""
        now, takes_ns = self.clock.now, self._delay_ns(50, FLIP_MS_MAX)
        self.outages.append(Outage(str(call.entity), now, now + takes_ns))
        self.clock.after(takes_ns, self._act, self.cuts, self._flipped, call, answer)

    def _flipped(self, call: Call, answer: Answer) -> None:
        self.services[call.entity.name] = str(call.values["image"])
        answer(Ended(call.id))

    def _look_busy(self, call: Call, answer: Answer) -> None:
        if self._draw("failing", self.trouble.failing):
            answer(Failed(call.id, "the gate cannot be read"))
            return
        at, value = self.clock.now, self._busy()
        delay_ns = self._delay_ns(0, 1_500) if self._draw("slow", self.trouble.slow) else 0
        self._tell(node_id(self.name), "busy", value, at)
        self.clock.after(delay_ns, answer, Answered(call.id, value, at))

    def _hold(self, call: Call, answer: Answer) -> None:
        """As of a real gate: one that refuses is open."""
        if self._draw("failing", self.trouble.failing):
            answer(Failed(call.id, "the gate cannot be closed"))
        elif self.jobs:
            self._open()
            answer(Failed(call.id, f"{self.jobs} jobs run", refused=True))
        else:
            self.gate = "closed"
            answer(Ended(call.id))

    def _release(self, call: Call, answer: Answer) -> None:
        if self._draw("failing", self.trouble.failing):
            answer(Failed(call.id, "the gate cannot be opened"))
        else:
            self._open()
            answer(Ended(call.id))

    def _open(self) -> None:
        self.gate = "open"
        if self._draw("crowded", self.trouble.crowded):
            self.start_job()
            self.clock.after(self._delay_ns(0, JOB_MS_MAX), self._end_job, self.cuts)

    def _end_job(self, cuts: int) -> None:
        if cuts == self.cuts and self.jobs:
            self.end_job()

    def _report_busy(self) -> None:
        self.clock.after(self._delay_ns(0, JOBS_SEEN_MS), self._sight_busy)

    def _sight_busy(self) -> None:
        if "look_busy" in self._watches:
            call, answer = self._watches["look_busy"]
            self._tell(node_id(self.name), "busy", self._busy(), self.clock.now)
            answer(WatchReported(call, self._busy(), self.clock.now))

    def _busy(self) -> str:
        return "busy" if self.jobs else "free"

    def _tell(self, entity: EntityId, variable: str, value: str, at: int) -> None:
        self.readings.append(ToldValue(entity, variable, value, at, self.cuts))

    def _draw(self, trouble: str, share: float) -> bool:
        return self.clock.chance(f"machine/{self.name}", f"machine {trouble}", share)

    def _delay_ns(self, low_ms: int, high_ms: int) -> int:
        return self.clock.rng(f"machine/{self.name}").randrange(low_ms, high_ms) * MS


def _nobody(_: Answered | Ended | Failed | WatchReported) -> None:
    """The answer never arrives."""


def _dying(died: Callable[[], None]) -> Answer:
    return lambda _: died()
