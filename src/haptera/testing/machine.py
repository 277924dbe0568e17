"""A simulated machine: power behind a BMC, an agent that boots with it, services that run on it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from haptera.model.effects import Call, Work
from haptera.model.events import Answered, Ended, Failed
from haptera.testing.clock import Clock

MS = 1_000_000

Answer = Callable[[Answered | Ended | Failed], None]


@dataclass
class Command:
    """One power command as the BMC's own file has it; `done_at` is None until it took effect."""

    intent: str
    power: str
    at: int
    done_at: int | None = None


@dataclass
class Machine:
    """What is really there. `booted` is told when the machine has booted, or lost its power."""

    clock: Clock
    name: str
    booted: Callable[[str], None]
    stopped: Callable[[str], None]
    refuses: str | None = None
    power: str = "off"
    commands: list[Command] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    services: dict[str, str] = field(default_factory=dict)

    def handle(self, call: Call, answer: Answer) -> None:
        """What the module of this call would do with the real machine."""
        if call.work is Work.WATCH:
            return
        delay_ns = self._delay_ns(1, 40)
        if call.deadline_at is not None and self.clock.now + delay_ns > call.deadline_at:
            answer(Failed(call.id, "too late to begin"))
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
        self.services.clear()
        self.stopped(self.name)

    def _look_power(self, call: Call, answer: Answer) -> None:
        at = self.clock.now
        self.reads.append(at)
        answer(Answered(call.id, self.power, at))

    def _switch_on(self, call: Call, answer: Answer) -> None:
        self._command(call, answer, "on")

    def _switch_off(self, call: Call, answer: Answer) -> None:
        self._command(call, answer, "off")

    def _command(self, call: Call, answer: Answer, power: str) -> None:
        assert call.intent is not None
        if self.refuses is not None:
            answer(Failed(call.id, self.refuses, refused=True))
            return
        command = Command(call.intent, power, self.clock.now)
        self.commands.append(command)
        self.clock.after(self._delay_ns(100, 1_800), self._effect, command)
        answer(Ended(call.id))

    def _effect(self, command: Command) -> None:
        command.done_at = self.clock.now
        if command.power == "off":
            self.cut()
        elif self.power == "off":
            self.power = "on"
            self.clock.after(self._delay_ns(300, 1_500), self._boot, command)

    def _boot(self, command: Command) -> None:
        if self.power == "on" and command is self.commands[-1]:
            self.booted(self.name)

    def _look_run(self, call: Call, answer: Answer) -> None:
        running = call.entity.name in self.services
        answer(Answered(call.id, "running" if running else "stopped", self.clock.now))

    def _look_applied(self, call: Call, answer: Answer) -> None:
        digest = self.services.get(call.entity.name)
        if digest is None:
            answer(Failed(call.id, "does not run"))
        else:
            answer(Answered(call.id, digest, self.clock.now))

    def _start(self, call: Call, answer: Answer) -> None:
        self.services[call.entity.name] = call.digest
        answer(Ended(call.id))

    def _stop(self, call: Call, answer: Answer) -> None:
        self.services.pop(call.entity.name, None)
        answer(Ended(call.id))

    def _delay_ns(self, low_ms: int, high_ms: int) -> int:
        return self.clock.rng(f"machine/{self.name}").randrange(low_ms, high_ms) * MS
