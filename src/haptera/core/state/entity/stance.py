"""The status of one entity and its last decision: the part of decide."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from haptera.core.state.entity.decision import Decision
from haptera.core.state.entity.nothing import nothing
from haptera.core.state.entity.verdict import Verdict
from haptera.model.answers.views import Condition
from haptera.model.chain import Chain, NoChain

IDLE: Final = Verdict(Condition.IDLE)


@dataclass(slots=True)
class Stance:
    """The last verdict, `since` when its condition holds, and the plan behind it.

    `frozen` says which freeze holds the entity. `lent` stands for what those on a node were last
    decided with, of the node's own: hashes of what they borrow, and of all. There are many nodes.
    `decision` is the last one, whole. `related` is what was known of the entities that it is
    related to when it was decided on.
    """

    verdict: Verdict = IDLE
    since: int | None = None
    plan: Chain | NoChain | None = None
    frozen: str | None = None
    decision: Decision | None = None
    lent: tuple[int, int] | None = None
    related: Mapping[str, str] = field(default_factory=nothing)

    @property
    def condition(self) -> Condition:
        return self.verdict.condition

    @property
    def why(self) -> str | None:
        return self.verdict.why

    def arrive(self, verdict: Verdict, now: int) -> bool:
        """Take this to be where the entity stands; tell whether that is news."""
        before, self.verdict = self.verdict, verdict
        if self.since is None or verdict.condition is not before.condition:
            self.since = now
        if verdict.quotes is not None:
            self.since = verdict.quotes.since
        return (verdict.condition, verdict.why) != (before.condition, before.why)

    def relate(self, known: Mapping[str, str]) -> None:
        """Note what is known of the entities that it is related to."""
        self.related = known

    def quote(self, verdict: Verdict, now: int) -> bool:
        """As `arrive`, where another side decides: no plan is made here."""
        self.plan = None
        return self.arrive(verdict, now)

    def lasted(self, now: int) -> int:
        """For how long it has stood so."""
        return 0 if self.since is None else now - self.since
