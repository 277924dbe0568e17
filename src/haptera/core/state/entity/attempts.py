"""Attempts on one entity: errors, back-offs, and steps that do not last."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from haptera.core.state.entity.nothing import nothing
from haptera.core.state.limits import DONE_AGAIN_MAX, LASTS_NS, MS
from haptera.model.parts import Step
from haptera.model.policy import GIVEN_UP, Policy
from haptera.model.walltime import span

# Steps remembered of each entity, to see what does not last; a restart forgets them.
TRIED_MAX: Final = 64


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
class Attempts:
    """The last error, in the words of the part whose path `failing` is, and what leads to the next.

    `failures` counts those in a row, by part; `barred` says until when a step is not taken again
    from a state in which it failed. Steps done up to `forgiven_at` are no part of an `oscillation`,
    and those up to `relented_at` were done for another wish: no sign that anything does not last.
    """

    error: str | None = None
    failing: str | None = None
    failures: Mapping[str, int] = field(default_factory=nothing)
    barred: Mapping[tuple[int, str], int] = field(default_factory=nothing)
    tried: tuple[Tried, ...] = ()
    oscillation: Oscillation | None = None
    forgiven_at: int = 0
    relented_at: int = 0

    def note(self, tried: Tried) -> None:
        """A step is over."""
        self.tried = (*self.tried, tried)[-TRIED_MAX:]

    @property
    def error_clause(self) -> str:
        """The last error, to be put after words on what is waited for meanwhile."""
        return "" if self.error is None else f"; before that, {self.error}"

    def blame(self, path: str, error: str) -> None:
        """This part is at fault, which is no failure that counts."""
        self.failing, self.error = path, error

    def count(self, path: str, failures: int, error: str) -> None:
        """This part failed for the so-manieth time in a row."""
        self.failures = {**self.failures, path: failures}
        self.blame(path, error)

    def fail(self, path: str, error: str, policy: Policy) -> int:
        """This part failed; returns how often it did in a row."""
        failures = self.failures.get(path, 0) + 1
        if policy.gives_up(failures):
            attempts = "1 attempt" if failures == 1 else f"{failures} attempts"
            error = f"{error}{GIVEN_UP}{attempts}, for {span(policy.cool_down_ms)}"
        self.count(path, failures, error)
        return failures

    def quote(self, error: str | None) -> None:
        """Take over the error of the side that decides on the entity."""
        self.error = error

    def succeed(self, path: str) -> None:
        """This part worked: if the last error was its own, that is over."""
        self.retry(path)
        if self.failing == path:
            self.absolve()

    def absolve(self) -> None:
        """The last error is over, whosever it was."""
        self.failing = self.error = None

    def recover(self) -> None:
        """The entity is well: no error, and no failure counts any more."""
        self.absolve()
        self.failures = nothing()

    def retry(self, path: str) -> None:
        """Count the failures of this part anew: its cool-down is over."""
        if path in self.failures:
            self.failures = {one: count for one, count in self.failures.items() if one != path}

    def oscillates(self, found: Oscillation) -> None:
        """Its steps undo each other's: nothing is tried for a while."""
        self.oscillation = found

    def forgive(self) -> None:
        """What was done until now no longer counts as going round in circles."""
        self.oscillation = None
        self.forgiven_at = self.tried[-1].at if self.tried else 0

    def relent(self) -> None:
        """A person asks, or something else is desired: whatever failed may be tried at once."""
        self.forgive()
        self.relented_at = self.forgiven_at
        self.failures = self.barred = nothing()

    def reconsider(self, module: str) -> None:
        """The module is another than the one whose parts failed: they may be tried at once."""
        self.forgive()
        own = f"{module}."
        if self.failures:
            self.failures = {
                path: count for path, count in self.failures.items() if not path.startswith(own)
            }
        if self.barred:
            self.barred = {key: at for key, at in self.barred.items() if not key[1].startswith(own)}

    def again_at(self, step: Step, policy: Policy, now: int) -> int:
        """When a step that worked, but does not last, may be done again: later each time."""
        since = max(self.relented_at, now - LASTS_NS)
        done = [
            one.at for one in self.tried if one.worked and one.path == step.path and one.at > since
        ]
        if len(done) < DONE_AGAIN_MAX:
            return now
        return done[-1] + policy.wait_ms(len(done) - DONE_AGAIN_MAX + 1, 1.0) * MS

    def bar(self, start: int, path: str, until: int, now: int) -> None:
        """Do not take this part from this start before then; bars that are over are dropped."""
        kept = {key: at for key, at in self.barred.items() if at > now}
        self.barred = {**kept, (start, path): until}
