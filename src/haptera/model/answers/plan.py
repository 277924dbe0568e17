"""The consequences of changes, as people and programs see them, saved, and compared."""

import hashlib
from typing import Final

import msgspec

from haptera.model.answers.views import Condition, LinkView

# Hexadecimal digits of a digest: enough that two plans never share one, few enough to be typed.
DIGEST_DIGITS: Final = 12
# More than this share of the nodes, in percent, is not disrupted without the plan's digest.
RADIUS_PERCENT: Final = 10
# A change that disrupts no more nodes than this is never questioned, on any size of cluster.
UNASKED_MAX: Final = 1


class Rewrite(msgspec.Struct, frozen=True, gc=False):
    """One change of what is desired, the same of all entities `of` this title `on` these nodes.

    Without a `name` they are declared or undeclared themselves, and the values are their
    attributes, as a JSON object. A value that is None is not there. `on` is None for what is the
    whole cluster's.
    """

    of: str
    on: str | None
    entities: int
    name: str | None
    before: str | int | None
    owner_before: str | None
    after: str | int | None
    owner: str | None

    @property
    def undeclares(self) -> bool:
        """Whether it is the end of these entities, not of one of their values."""
        return self.name is None and self.after is None


class AtMost(msgspec.Struct, frozen=True, gc=False):
    """A step that so many of a group's entities would take at the most, whatever looks find."""

    part: str
    does: str
    disruptive: bool
    entities: int


class Worst(msgspec.Struct, frozen=True, gc=False):
    """What may come of a group whose chain begins with a look, for each step by itself.

    `unknown` are the variables that would be looked at; `stuck` entities at most would find no
    way on. Without `whole` there is more that may come than was followed.
    """

    unknown: list[str]
    steps: list[AtMost]
    stuck: int
    whole: bool


class PlanFreeze(msgspec.Struct, frozen=True, gc=False):
    """Entities of a group on which no step begins before a freeze ends: the one that lasts longest.

    It is its `owner`'s, and ends at `until_s`, since 1970, or else when somebody thaws it.
    """

    on: str | None
    entities: int
    owner: str
    until_s: int | None
    reason: str | None


class PlanGroup(msgspec.Struct, frozen=True, gc=False):
    """Entities that stand alike, should be alike, and get there by the same chain.

    `state` holds what the chain depends on: `x?` is remembered. Without a `chain`, `why` says why
    there is none. It usually takes `usual_ms`, as far as its parts were measured; those that were
    not are `unmeasured`. `services` run on nodes that would be disrupted, and would be hit;
    `busy` nodes have jobs, whose end is waited for. On what is `frozen` no step is taken yet.
    The budgets let all of them go in so many `rounds`, None being never, which takes `at_least_ms`.
    """

    of: str
    on: str | None
    entities: int
    state: dict[str, str]
    goal: dict[str, str]
    condition: Condition
    why: str | None
    chain: list[LinkView]
    cost: int | None
    usual_ms: int
    unmeasured: list[str]
    worst: Worst | None
    services: str | None
    busy: str | None
    frozen: list[PlanFreeze]
    rounds: int | None
    at_least_ms: int

    @property
    def title(self) -> str:
        """Which entities, in words."""
        return self.of if self.on is None else f"{self.of} on {self.on}"


class Plan(msgspec.Struct, frozen=True, gc=False):
    """The consequences of changes: the entities whose goal these move, grouped.

    `anyway` counts, by condition, those that are not as desired already, and are no part of it.
    `nodes` counts all, those that are declared by it included.
    `disrupted` are the nodes that a disruptive step would run on, or may in the worst case; those
    on which a service runs that is to be stopped; and those that are declared no more.
    `parts` has for each module that could do any of it what its parts sum up to. While the `brake`
    is on, for the reason it gives, nothing disruptive begins.
    """

    digest: str
    rewrites: list[Rewrite]
    groups: list[PlanGroup]
    anyway: dict[str, int]
    nodes: int
    disrupted: str | None
    disrupted_nodes: int
    parts: dict[str, str]
    brake: str | None

    def is_wide(self, radius_percent: int, besides: int = 0) -> bool:
        """Whether it may disrupt more nodes, with those `besides`, than is done without a digest.

        >>> plan = Plan("", [], [], {}, 40, "n[1-5]", disrupted_nodes=5, parts={}, brake=None)
        >>> plan.is_wide(10), plan.is_wide(20)
        (True, False)
        """
        disrupted = self.disrupted_nodes + besides
        return disrupted * 100 > self.nodes * radius_percent and disrupted > UNASKED_MAX


def digest_of(plan: Plan) -> str:
    """What stands for all that a plan rests on and would do; not for how long it may take."""
    told = [
        plan.rewrites,
        [
            (one.of, one.on, one.state, one.goal, _way(one), one.services, one.frozen)
            for one in plan.groups
        ],
        plan.disrupted,
        plan.parts,
    ]
    text = msgspec.json.encode(told, order="deterministic")
    return hashlib.blake2b(text, digest_size=DIGEST_DIGITS // 2).hexdigest()


def _way(group: PlanGroup) -> list[tuple[str, str | None]] | str | None:
    if not group.chain:
        return group.why
    return [(link.part, link.expect) for link in group.chain]
