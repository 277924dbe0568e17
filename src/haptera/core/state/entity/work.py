"""The work under way on one entity: its looks, its step, readings to be settled: act's part."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from haptera.core.state.entity.nothing import nothing
from haptera.core.state.limits import MS
from haptera.model.facts import Fact
from haptera.model.intent import Intent
from haptera.model.parts import Look, Step


@dataclass(slots=True)
class LookSchedule:
    """One look of an entity: when it is due, and the calls under way for it.

    Having failed, it is not taken again before `failed_until`, nor watched before `watch_at`.
    `look` is there while its conditions hold, begun at `asked_at`; it usually took `usual_ns`.
    """

    due_at: int = 0
    failed_until: int = 0
    call: int | None = None
    watch: int | None = None
    watch_at: int = 0
    asked_at: int = 0
    usual_ns: int | None = None
    look: Look | None = None


class Phase(Enum):
    """How far a step is: its intent being written, durable, its call under way, then read."""

    WRITING = auto()
    WRITTEN = auto()
    CALLED = auto()
    READING = auto()


# All transitions of a step, and what causes each. None is before its intent, and after its end.
TRANSITIONS: Final[Mapping[tuple[Phase | None, Phase | None], str]] = {
    (None, Phase.WRITING): "the decision is to begin it: its intent goes to the disk",
    (None, Phase.READING): "an earlier process may have called it",
    (Phase.WRITING, Phase.WRITTEN): "its intent is durable",
    (Phase.WRITING, None): "its intent could not be stored",
    (Phase.WRITTEN, Phase.CALLED): "the decision is still to begin it: its module is called",
    (Phase.WRITTEN, None): "the decision is to withdraw it",
    (Phase.CALLED, Phase.READING): "it returned, failed, or did not answer in time",
    (Phase.CALLED, None): "its device refused it",
    (Phase.READING, None): "its outcome was read",
}


@dataclass(slots=True)
class StepRun:
    """A step under way. None other is begun on the entity before its outcome was read.

    `settled_at` is when its longest late effect has passed, so that any reading counts; `seen_ns`
    over how long what it starts from had been read, the same each time, when it was begun, `goal`
    what was desired then; `enrolled` that the node may have enrolled since; `usual_ns` how long it
    usually took; `progress` how far it says that it is; `unwanted` that it was asked to stop;
    `refused` that the device took no notice of it, or that all is again as it was.
    """

    intent: Intent
    step: Step
    start: int | None
    settled_at: int
    phase: Phase = Phase.WRITING
    call: int | None = None
    error: str | None = None
    enrolled: bool = False
    seen_ns: int = 0
    usual_ns: int | None = None
    progress: tuple[str, float | None] | None = None
    goal: Mapping[str, str] | None = None
    unwanted: bool = False
    refused: bool = False

    @property
    def deadline_at(self) -> int:
        """After when the step is not called any more."""
        return self.settled_at - self.step.late_ms * MS

    def aim(self, goal: Mapping[str, str]) -> None:
        """Note what is desired as it is begun."""
        self.goal = goal

    def may_go(self, now: int) -> bool:
        """Whether its intent is durable, and its call neither made nor too late."""
        return self.phase is Phase.WRITTEN and now < self.deadline_at

    @property
    def begun(self) -> bool:
        """Whether its command may be on its way, or have had its effect."""
        return self.phase in (Phase.CALLED, Phase.READING)


@dataclass(slots=True)
class ReadingConflict:
    """A fresh reading that another's denies; both were looked at again so many times.

    `against` is the variable of the reading that denies it: itself, where two modules differ.
    Until `fresh_until` it may be read again; unless it is, the other then counts. `read_by` and
    `denied_by` are the paths of the two looks.
    """

    variable: str
    fact: Fact
    against: str
    fresh_until: int
    text: str = ""
    read_by: str = ""
    denied_by: str = ""
    looks: int = 0
    again_at: int = 0


@dataclass(frozen=True, slots=True)
class HarmlessStep:
    """A disruptive step, by its intent, that disturbed nobody: it counts in no hour.

    Where it was not refused, that is known once the node's agent was heard `past` its last effect.
    """

    intent: Intent
    past: int | None = None


@dataclass(slots=True)
class EntityWork:
    """Looks by their path, the step under way, and what its readings cannot agree on.

    `unsettled` is a step that worked and never returned, and until when it may still take effect.
    Of a node, `booted_at` is when this side found that it had booted it, until the node enrols,
    `booted_surely` where no single reading could have misled it. `harmless` is the last step, until
    that is counted nowhere any more, if it changed nothing.
    """

    looks: dict[str, LookSchedule] = field(default_factory=dict)
    stepping: StepRun | None = None
    conflicts: Mapping[str, ReadingConflict] = field(default_factory=nothing)
    unsettled: tuple[str, int] | None = None
    booted_at: int | None = None
    booted_surely: bool = False
    harmless: HarmlessStep | None = None

    def begin(self, stepping: StepRun) -> StepRun:
        """A step is under way from now on."""
        assert (None, stepping.phase) in TRANSITIONS, stepping.phase
        assert self.stepping is None, self.stepping
        self.stepping = stepping
        return stepping

    def enter(self, phase: Phase) -> StepRun:
        """The step under way comes to its next phase."""
        assert self.stepping is not None
        assert (self.stepping.phase, phase) in TRANSITIONS, (self.stepping.phase, phase)
        self.stepping.phase = phase
        return self.stepping

    def end(self) -> None:
        """No step is under way any more."""
        assert self.stepping is not None
        assert (self.stepping.phase, None) in TRANSITIONS, self.stepping.phase
        self.stepping = None

    def enrolled(self) -> None:
        """The node has enrolled: it has booted, whichever step is under way."""
        self.booted_at = None
        if self.harmless is not None and self.harmless.past is not None:
            self.harmless = None
        if self.stepping is not None:
            self.stepping.enrolled = True

    def discounted(self) -> None:
        """The last step, which was harmless, is counted nowhere any more."""
        self.harmless = None

    def contest(self, conflict: ReadingConflict) -> None:
        """Readings of a variable cannot agree, or are newer than those that could not."""
        self.conflicts = {**self.conflicts, conflict.variable: conflict}

    def agree(self, variable: str) -> None:
        """Readings of this variable contradict each other no longer."""
        self.conflicts = {name: one for name, one in self.conflicts.items() if name != variable}

    def schedule(self, path: str, otherwise: LookSchedule) -> LookSchedule:
        """The look's schedule, this one where it has none yet."""
        return self.looks.setdefault(path, otherwise)

    def unschedule(self, path: str) -> None:
        """The look is not to be taken, nor waited for, any more."""
        self.looks.pop(path, None)

    def unschedule_all(self) -> None:
        """No look is to be taken here any more."""
        self.looks.clear()

    def hurry(self) -> None:
        """Every look is due at once."""
        for looking in self.looks.values():
            looking.due_at = 0

    def failed_looks(self, now: int) -> dict[str, int]:
        """The looks that failed and whose time to try again has not come, and when it does."""
        return {
            path: one.failed_until for path, one in self.looks.items() if one.failed_until > now
        }

    def retry_looks(self, module: str | None = None) -> None:
        """Looks that failed may be taken again at once: those of one module, or all."""
        for path, looking in self.looks.items():
            if looking.failed_until and (module is None or path.startswith(f"{module}.")):
                looking.failed_until = 0
