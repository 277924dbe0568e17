"""Entities as people and programs see them: answers, streams, pages."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from haptera.model.answers.explained import Explained
from haptera.model.walltime import AgeMs

# What a reason begins with that names readings which contradict each other.
CONTESTED: Final = "contested: "


# Sentences; a caller who may see only some entities gets none.
Faults = Annotated[
    list[str],
    msgspec.Meta(
        description="What is wrong with haptera itself: its store, parents that do not report."
    ),
]


class Condition(StrEnum):
    """Where an entity stands between what is and what should be."""

    IDLE = "idle"  # nothing is desired of it
    CONVERGED = "converged"  # all that is desired is known to be so
    ACTING = "acting"  # a part of its chain is under way, or about to be
    WAITING = "waiting"  # its chain goes on elsewhere, or once a borrowed value is there
    STUCK = "stuck"  # no chain, or the next part failed and is tried again later


# Nothing is to be done.
SETTLED: Final = (Condition.CONVERGED, Condition.IDLE)


class DesiredView(msgspec.Struct, frozen=True, gc=False):
    value: str | int
    owner: str


class ReadingView(msgspec.Struct, frozen=True, gc=False):
    """What a look, `by` its path, read of a variable so long ago."""

    variable: str
    value: str
    by: str
    age_ms: int


class ObservedView(msgspec.Struct, frozen=True, gc=False):
    """`known` is false for a remembered value; `age_ms` counts from when it was read.

    `contested` is the reading that contradicts it; of two that differ, the entity holds the later.
    `note` is what was seen besides the value, in words.
    """

    value: str
    known: bool
    method: str
    by: str
    age_ms: int
    contested: ReadingView | None = None
    note: str | None = None


class LinkView(msgspec.Struct, frozen=True, gc=False):
    """One part of a chain: `part` is MODULE.PART, `expect` what a look should find."""

    part: str
    does: str
    where: str
    disruptive: bool = False
    expect: str | None = None


class DoingView(msgspec.Struct, frozen=True, gc=False):
    """The part that is under way, since when, and how long it usually takes, as far as known.

    `progress` is how far a step says that it is, in words, and `done` as a share of 1.
    """

    part: str
    since_ms: int
    usual_ms: int | None = None
    progress: str | None = None
    done: float | None = None


class TriedView(msgspec.Struct, frozen=True, gc=False):
    """A step that was taken, or meant and not taken, and what came of it; oldest first."""

    part: str
    ago_ms: int
    outcome: str


class EntityView(msgspec.Struct, frozen=True, gc=False):
    """One entity as it is, as it should be, and how it gets from the one to the other.

    `why` says, for whatever is not converged, what it stands at; `error` the last error in the
    module's own words; `since_ms` how long its condition has lasted; `tried` the last steps that
    the side that answers has taken, where it was asked of this entity alone; `told_by` whose word
    the condition, `why` and `error` are where they are not its own: the node's, whose agent is
    at work. `unblock` says who or what would let it go on, `again_in_ms` when what failed is tried
    again by itself. `doing` is the part of it that is under way. `explained` is why this chain, or
    what else there is, where somebody asked. `frozen` says by whom and why no step begins on it.
    Of a node, `lost_ms` is for how long its agent has counted as lost, None where it does not;
    it is `suspect` while its agent is late, and not lost yet; `enrolment` is the level at which it
    has enrolled, `window`, `signed` or `out-of-band`, while it has a session of a known one.
    """

    entity: str
    kind: str
    name: str
    node: str | None
    revision: int
    attributes: dict[str, str]
    desired: dict[str, DesiredView]
    observed: dict[str, ObservedView]
    condition: Condition
    chain: list[LinkView]
    since_ms: int
    why: str | None = None
    error: str | None = None
    tried: list[TriedView] = []
    told_by: str | None = None
    unblock: str | None = None
    again_in_ms: int | None = None
    doing: DoingView | None = None
    explained: Explained | None = None
    frozen: str | None = None
    lost_ms: int | None = None
    suspect: bool = False
    enrolment: str | None = None

    def desired_value(self, name: str) -> str | int | None:
        """The desired value of this name, of any owner."""
        held = self.desired.get(name)
        return None if held is None else held.value

    def known_value(self, name: str) -> str | None:
        """The last reading of a variable, while that is known."""
        fact = self.observed.get(name)
        return fact.value if fact is not None and fact.known else None


class EntityDetail(EntityView, frozen=True, gc=False):
    """An entity, and how its node's agent sees it: its chain, why, and what it has tried.

    `unasked` says why the agent's word could not be had.
    """

    agent: EntityView | None = None
    unasked: str | None = None


def detail_of(
    view: EntityView, *, agent: EntityView | None = None, unasked: str | None = None
) -> EntityDetail:
    """A view with an agent's word added."""
    fields = {name: getattr(view, name) for name in view.__struct_fields__}
    return EntityDetail(**fields, agent=agent, unasked=unasked)


class BrakeView(msgspec.Struct, frozen=True, gc=False):
    """Why the brake is on, None where it is off, and how long it stays so if nothing happens."""

    why: str | None
    left_ms: int


class AlikeView(msgspec.Struct, frozen=True, gc=False):
    """So many entities that stand alike: of one kind, one name unless they are nodes, one reason.

    `on` are their nodes as a node-set; of what is on no node, its name. `why` is said of `the
    node`, where there are several; `frozen` says by whom and why no step begins on them.
    """

    kind: str
    name: str | None
    condition: Condition
    count: int
    on: str
    why: str | None = None
    frozen: str | None = None


class ParentView(msgspec.Struct, frozen=True, gc=False):
    """A parent of the tree: whom it reports to, its version, and the nodes that it keeps now.

    `name` is None for the root, `above` for a parent that reports to the one that answers.
    `heard_ms` is how long ago it was last heard, None where it does not report: then the rest is
    not known. `keeps` is a node-set, in which a node is twice while two parents hear it.
    """

    name: str | None
    above: str | None = None
    version: str | None = None
    keeps: str | None = None
    heard_ms: AgeMs | None = None


class TreeView(msgspec.Struct, frozen=True, gc=False):
    """The parents, the one that answers first; how many commits its standby lacks, if any."""

    parents: list[ParentView]
    standby_lag: int | None = None


class Summary(msgspec.Struct, frozen=True, gc=False):
    """How many entities of each kind stand in each condition.

    `subtrees` counts, by parent directly below, those that are known by its word.
    """

    counts: dict[str, dict[str, int]]
    subtrees: dict[str, dict[str, dict[str, int]]] = {}
