"""One entity in memory: what it should be, what it is, and what is being done about it."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from haptera.core.state.limits import DONE_AGAIN_MAX, LASTS_NS, MS
from haptera.core.state.link_state import LinkState
from haptera.core.state.verdict import Stands, Verdict
from haptera.model.chain import Chain, NoChain
from haptera.model.changes import Desired
from haptera.model.entity import EntityId
from haptera.model.facts import Fact, Method
from haptera.model.intent import Intent
from haptera.model.messages import Ask
from haptera.model.parts import Look, Step
from haptera.model.policy import Policy
from haptera.model.schema import Applied, Kind, digest
from haptera.model.views import Condition
from haptera.model.walltime import span

# What stands for what was last published of an entity: desired, observed, and the rest.
Published = tuple[int, int, int]

IDLE: Final = Verdict(Condition.IDLE)

# Steps remembered of each entity, to see what does not last; a restart forgets them.
TRIED_MAX: Final = 64


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


@dataclass(slots=True)
class StepRun:
    """A step under way. None other is begun on the entity before its outcome was read.

    `settled_at` is when its longest late effect has passed, so that any reading counts; `seen_ns`
    over how long what it starts from had been read, the same each time, when it was begun, `goal`
    what was desired then; `enrolled` that the node may have enrolled since; `usual_ns` how long it
    usually took; `progress` how far it says that it is; `unwanted` that it was told to stop.
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

    @property
    def deadline_at(self) -> int:
        """After when the step is not called any more."""
        return self.settled_at - self.step.late_ms * MS

    def may_go(self, now: int) -> bool:
        """Whether its intent is durable, and its call neither made nor too late."""
        return self.phase is Phase.WRITTEN and now < self.deadline_at

    @property
    def begun(self) -> bool:
        """Whether its command may be on its way, or have had its effect."""
        return self.phase in (Phase.CALLED, Phase.READING)


@dataclass(frozen=True, slots=True)
class Tried:
    """One step as it went: when it ended, and what came of it."""

    path: str
    at: int
    outcome: str
    worked: bool = False


@dataclass(frozen=True, slots=True)
class Oscillation:
    """Two modules undo each other: nothing is done from `at` until `until`.

    It was so in as many `rounds`. `wrote` are the variables that their steps change, `bystanders`
    what was known of all others: where that changes, it need not wait, from `thaws_at` on.
    """

    at: int
    until: int
    rounds: int
    text: str
    wrote: frozenset[str]
    bystanders: Mapping[str, str]
    thaws_at: int

    def again_at(self, now: int) -> int:
        """When to decide on it again, if nothing happens before."""
        return min(self.until, self.thaws_at) if now < self.thaws_at else self.until


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


@dataclass(slots=True)
class EntityState:
    """The state of one entity.

    Its parts are written by who they belong to: `link` by sync.
    A `resident` row is there whether or not anybody declared it: that of a module.
    `reported` is the node's last word, good for as long as the node is known to be there, and so
    is `stands`, on where the entity stands; `verdict` is what was last decided, and `since` when;
    `lent` is what those on it were last decided with, of its own, `published` what listeners
    were told;
    a `leaving` entity is no longer declared, and brought to what its kind leaves;
    `found_at` says when each known value was first read; `second` holds what another module last
    read of a variable, `contests` what cannot be so together with what is known; steps done up
    to `forgiven_at` are no part of an `oscillation`, and those up to `relented_at` were done for
    another wish, and are no sign that anything does not last;
    `error` is the last one, in the words of the part whose path `failing` is; `failures` counts
    those in a row, by part; `asking` is what its plan needs its node's permit for; of a node,
    `booted_at` is when this side found that it had booted it, until the node enrols, `surely`
    where no single reading could have misled it; `unsettled` is a step that worked and never
    returned, and until when it may still take effect; `frozen` says which freeze holds it; of a
    node, its agent is lost since `lost_at`.
    """

    id: EntityId
    kind: Kind
    attributes: dict[str, str] = field(default_factory=dict)
    owner: str = ""
    desired: dict[str, Desired] = field(default_factory=dict)
    revision: int = 0
    leaving: bool = False
    link: LinkState = field(default_factory=LinkState)
    resident: bool = False
    known: dict[str, Fact] = field(default_factory=dict)
    remembered: dict[str, Fact] = field(default_factory=dict)
    reported: dict[str, Fact] = field(default_factory=dict)
    stands: Stands | None = None
    forgotten_at: dict[str, int] = field(default_factory=dict)
    found_at: dict[str, int] = field(default_factory=dict)
    second: dict[str, Fact] = field(default_factory=dict)
    contests: dict[str, ReadingConflict] = field(default_factory=dict)
    oscillation: Oscillation | None = None
    forgiven_at: int = 0
    relented_at: int = 0
    looks: dict[str, LookSchedule] = field(default_factory=dict)
    stepping: StepRun | None = None
    barred: dict[tuple[int, str], int] = field(default_factory=dict)
    plan: Chain | NoChain | None = None
    frozen: str | None = None
    verdict: Verdict = IDLE
    since: int | None = None
    error: str | None = None
    failing: str | None = None
    failures: dict[str, int] = field(default_factory=dict)
    tried: deque[Tried] = field(default_factory=lambda: deque(maxlen=TRIED_MAX))
    asking: Ask | None = None
    booted_at: int | None = None
    booted_surely: bool = False
    lost_at: int | None = None
    unsettled: tuple[str, int] | None = None
    lent: tuple[tuple[str, str], ...] = ()
    published: Published | None = None

    @property
    def declared(self) -> bool:
        """Whether somebody declared the entity, or it is only there because it runs."""
        return not self.resident or bool(self.owner or self.revision or self.desired)

    def withdraw(self) -> None:
        """Nobody declares it any more; a resident stays."""
        self.owner, self.desired, self.attributes = "", {}, {}
        self.revision = self.link.confirmed = 0
        self.relent()

    @property
    def condition(self) -> Condition:
        return self.verdict.condition

    @property
    def why(self) -> str | None:
        return self.verdict.why

    @property
    def at_rest(self) -> bool:
        """Whether it is as desired, nothing is under way, and nothing is wrong with it."""
        settled = self.condition in (Condition.CONVERGED, Condition.IDLE) and not self.leaving
        disputed = self.contests or self.second or self.oscillation is not None
        idle = self.stepping is None and self.asking is None and self.error is None
        return settled and idle and not disputed

    def arrive(self, verdict: Verdict, now: int) -> bool:
        """Take this to be where the entity stands; tell whether that is news."""
        before, self.verdict = self.verdict, verdict
        if self.since is None or verdict.condition is not before.condition:
            self.since = now
        if verdict.quotes is not None:
            self.since = verdict.quotes.since
        return (verdict.condition, verdict.why) != (before.condition, before.why)

    def lasted(self, now: int) -> int:
        """For how long it has stood so."""
        return 0 if self.since is None else now - self.since

    def plain(self, compared_by: str | None = None) -> dict[str, str | int]:
        """The desired plain data, or those of them that a variable compares."""
        said = {one.name for one in self.kind.plain if one.is_compared_by(compared_by)}
        return {name: one.value for name, one in self.desired.items() if name in said}

    def digest(self, variable: str) -> str:
        """What a variable like `applied` is compared with."""
        return digest(self.plain(variable))

    def value(self, name: str, fact: Fact) -> str:
        """The fact as a value of its variable: a digest in force is current or stale."""
        variable = self.kind.variable(name)
        if variable is None or variable.values is not Applied:
            return fact.value
        return Applied.CURRENT if fact.value == self.digest(name) else Applied.STALE

    def seen_to_be(self, name: str, fact: Fact) -> str:
        """In words: `run is failed: it ended with status 3`."""
        note = "" if fact.note is None else f": {fact.note}"
        return f"{name} is {self.value(name, fact)}{note}"

    def notes(self, step: Step) -> str:
        """What was noted of what a step changes, to be added to words about the step."""
        facts = {one.variable: self.known.get(one.variable) for one in step.changes}
        return "".join(
            f"; {self.seen_to_be(name, fact)}"
            for name, fact in facts.items()
            if fact is not None and fact.note is not None
        )

    def learn(self, name: str, fact: Fact) -> bool:
        """Take a reading, unless a later one is known; tell whether it says anything new."""
        old = self.known.get(name)
        if old is not None and old.at > fact.at:
            return False
        if old is None or old.value != fact.value:
            self.found_at[name] = fact.at
        if old is not None and old.by != fact.by and old.method is fact.method is Method.READ:
            self.second[name] = old
        self.known[name] = fact
        self.remembered.pop(name, None)
        return old is None or (old.value, old.method) != (fact.value, fact.method)

    def forget(self, name: str, now: int) -> bool:
        """Keep a value as remembered only; tell whether it was known."""
        fact = self.known.pop(name, None)
        if fact is None:
            return False
        self.second.pop(name, None)
        self.remembered[name] = fact
        self.forgotten_at[name] = now
        return True

    def expect(self, name: str, value: str, by: str, now: int) -> None:
        """A step should have brought this about; only a look can tell."""
        if name in self.known:
            self.forget(name, now)
        if self._plain_enum(name):
            self.remembered[name] = Fact(value, by, Method.INFERRED, now, 0)

    def _plain_enum(self, name: str) -> bool:
        variable = self.kind.variable(name)
        return variable is not None and variable.values is not Applied

    def fail(self, path: str, error: str, policy: Policy) -> int:
        """This part failed; returns how often it did in a row."""
        failures = self.failures[path] = self.failures.get(path, 0) + 1
        if policy.gives_up(failures):
            attempts = "1 attempt" if failures == 1 else f"{failures} attempts"
            error = f"{error}; given up after {attempts}, for {span(policy.cool_down_ms)}"
        self.failing, self.error = path, error
        return failures

    def forgive(self) -> None:
        """What was done until now no longer counts as going round in circles."""
        self.oscillation = None
        self.forgiven_at = self.tried[-1].at if self.tried else 0

    def reconsider(self, module: str) -> None:
        """A module is another than the one whose parts failed here: they may be tried at once."""
        self.forgive()
        own = f"{module}."
        if self.failures:
            self.failures = {
                path: count for path, count in self.failures.items() if not path.startswith(own)
            }
        if self.barred:
            self.barred = {key: at for key, at in self.barred.items() if not key[1].startswith(own)}
        for path, looking in self.looks.items():
            if looking.failed_until and path.startswith(own):
                looking.failed_until = 0

    def relent(self) -> None:
        """A person asks, or something else is desired: whatever failed may be tried at once."""
        self.forgive()
        self.relented_at = self.forgiven_at
        self.failures.clear()
        self.barred.clear()
        for looking in self.looks.values():
            looking.failed_until = 0

    def succeed(self, path: str) -> None:
        """This part worked: if the last error was its own, that is over."""
        self.failures.pop(path, None)
        if self.failing == path:
            self.failing = self.error = None

    def again_at(self, step: Step, policy: Policy, now: int) -> int:
        """When a step that worked, but does not last, may be done again: later each time."""
        since = max(self.relented_at, now - LASTS_NS)
        done = [
            one.at for one in self.tried if one.worked and one.path == step.path and one.at > since
        ]
        if len(done) < DONE_AGAIN_MAX:
            return now
        return done[-1] + policy.wait_ms(len(done) - DONE_AGAIN_MAX + 1, 1.0) * MS

    def bars(self, start: int, now: int) -> frozenset[str]:
        """The parts that failed from this start and whose time to try again has not come."""
        steps = {path for (state, path), at in self.barred.items() if state == start and at > now}
        looks = {path for path, looking in self.looks.items() if looking.failed_until > now}
        return frozenset(steps | looks)

    def try_again_at(self, now: int) -> int | None:
        """When the first of the parts that failed may be tried again."""
        looks = [looking.failed_until for looking in self.looks.values()]
        return min((at for at in (*self.barred.values(), *looks) if at > now), default=None)

    def bar(self, start: int, path: str, until: int, now: int) -> None:
        """Do not take this part from this start before then; bars that are over are dropped."""
        self.barred = {key: at for key, at in self.barred.items() if at > now}
        self.barred[start, path] = until

    def seen(self, goal: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """What is observed and what remembered, as the planner takes it (semantics.md, Start).

        An inferred value does not meet a goal: where it would, it counts as remembered.
        """
        observed: dict[str, str] = {}
        remembered = {name: self.value(name, fact) for name, fact in self.remembered.items()}
        for name, fact in (self.reported | self.known).items():
            value = self.value(name, fact)
            wished = fact.method is Method.INFERRED and goal.get(name) == value
            (remembered if wished else observed)[name] = value
        return observed, remembered
