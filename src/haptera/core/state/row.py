"""The record of one entity in memory: a part for each owner, and what takes several of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from haptera.core.state.entity.attempts import Attempts
from haptera.core.state.entity.belief import Belief
from haptera.core.state.entity.desired_state import DesiredState
from haptera.core.state.entity.link_state import LinkState
from haptera.core.state.entity.node_report import NodeReport
from haptera.core.state.entity.stance import Stance
from haptera.core.state.entity.work import EntityWork
from haptera.model.answers.views import SETTLED
from haptera.model.declared.schema import Applied, Kind, digest
from haptera.model.entity import EntityId
from haptera.model.facts import Fact, Method
from haptera.model.messages import Ask
from haptera.model.parts import Step
from haptera.planner.domain.bars import Bars

# What stands for what was last published of an entity: desired, observed, and the rest.
Published = tuple[int, int, int]
# All that a view was made of but ages, and the view as bytes to be formatted with these.
KeptText = tuple[tuple[object, ...], bytes]


@dataclass(slots=True)
class EntityState:
    """The record of one entity.

    Each part has one owner, which alone writes it: `desired` the table, `link` and `report` sync,
    `work` act, `stance` decide. `belief` and `attempts` change by their own methods only.
    `asking`, the safety's, is what the plan needs its node's permit for; `published`, the
    views', stands for what listeners were told, `decided`, theirs too, for what of that the last
    decision had changed, and `text` is its view as JSON.
    """

    id: EntityId
    kind: Kind
    desired: DesiredState = field(default_factory=DesiredState)
    belief: Belief = field(default_factory=Belief)
    report: NodeReport = field(default_factory=NodeReport)
    link: LinkState = field(default_factory=LinkState)
    work: EntityWork = field(default_factory=EntityWork)
    attempts: Attempts = field(default_factory=Attempts)
    stance: Stance = field(default_factory=Stance)
    asking: Ask | None = None
    published: Published | None = None
    decided: tuple[object, ...] | None = None
    text: KeptText | None = None

    @property
    def at_rest(self) -> bool:
        """Whether it is as desired, nothing is under way, and nothing is wrong with it."""
        settled = self.stance.condition in SETTLED and not self.desired.leaving
        disputed = (
            self.work.conflicts or self.belief.second or self.attempts.oscillation is not None
        )
        idle = self.work.stepping is None and self.asking is None and self.attempts.error is None
        return settled and idle and not disputed

    def relent(self) -> None:
        """A person asks, or something else is desired: whatever failed may be tried at once."""
        self.attempts.relent()
        self.work.retry_looks()

    def reconsider(self, module: str) -> None:
        """A module is another than the one whose parts failed here: they may be tried at once."""
        self.attempts.reconsider(module)
        self.work.retry_looks(module)

    def bars(self, now: int) -> Bars:
        """The parts that failed and whose time to try again has not come."""
        barred = self.attempts.barred
        steps = frozenset((path, state) for (state, path), at in barred.items() if at > now)
        return Bars(frozenset(self.work.failed_looks(now)), steps)

    def try_again_at(self, now: int) -> int | None:
        """When the first of the parts that failed may be tried again."""
        looks = self.work.failed_looks(now).values()
        steps = (at for at in self.attempts.barred.values() if at > now)
        return min((*steps, *looks), default=None)

    def plain(self, compared_by: str | None = None) -> dict[str, str | int]:
        """The desired plain data, or those of them that a variable compares."""
        said = {one.name for one in self.kind.plain if one.is_compared_by(compared_by)}
        return {name: one.value for name, one in self.desired.values.items() if name in said}

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
        facts = {one.variable: self.belief.known.get(one.variable) for one in step.changes}
        return "".join(
            f"; {self.seen_to_be(name, fact)}"
            for name, fact in facts.items()
            if fact is not None and fact.note is not None
        )

    def expect(self, name: str, value: str, by: str, now: int) -> None:
        """A step should have brought this about; only a look can tell."""
        self.belief.forget(name, now)
        self.report.forget(name)
        variable = self.kind.variable(name)
        if variable is not None:
            # What is current is what is desired now: another wish makes it stale.
            held = self.digest(name) if variable.values is Applied else value
            self.belief.remember(name, Fact(held, by, Method.INFERRED, now, 0))

    def seen(self, goal: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """What is observed and what remembered, as the planner takes it (semantics.md, Start).

        An inferred value does not meet a goal: where it would, it counts as remembered.
        """
        observed: dict[str, str] = {}
        remembered = {name: self.value(name, fact) for name, fact in self.belief.remembered.items()}
        for name, fact in {**self.report.facts, **self.belief.known}.items():
            value = self.value(name, fact)
            wished = fact.method is Method.INFERRED and goal.get(name) == value
            (remembered if wished else observed)[name] = value
        return observed, remembered
