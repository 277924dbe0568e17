"""All that can be asked of the runtime: the only output of the core; nothing is left to choose."""

from enum import StrEnum

import msgspec

from haptera.model.answers.plan import Plan
from haptera.model.changes import Author, Cause, Change, StoredEntity
from haptera.model.entity import EntityId
from haptera.model.messages import Message
from haptera.model.news import Types
from haptera.model.parts import Look, Step


class Work(StrEnum):
    """The work asked of a module; HOLD and RELEASE of one that is a gate.

    The core never asks for SAMPLE: the daemon does so beside it.
    """

    LOOK = "look"
    STEP = "step"
    WATCH = "watch"
    HOLD = "hold"
    RELEASE = "release"
    SAMPLE = "sample"


class Call(msgspec.Struct, frozen=True, gc=False):
    """Ask a module for one part on one entity.

    `deadline_at` is in ns of CLOCK_BOOTTIME, which module processes share; the module's process
    checks it just before it acts (a watch has none). `attributes` are those of the entity's node
    and of the entity; `values` its plain desired data, `digest` theirs. `intent` is set for
    steps; where it `enrols`, the runtime adds the token that it minted with the intent. A gate
    is asked of the node, its part named as the work. It goes to the
    module's `process` of this number, and to no other.
    """

    id: int
    work: Work
    module: str
    part: str
    entity: EntityId
    attributes: dict[str, str]
    values: dict[str, str | int]
    digest: str
    deadline_at: int | None
    intent: str | None = None
    enrols: bool = False
    process: int = 1


class Cancel(msgspec.Struct, frozen=True, gc=False):
    """Whatever this call answers from now on counts for nothing; end it where that is safe."""

    call: int
    module: str
    process: int = 1


class StopStep(msgspec.Struct, frozen=True, gc=False):
    """Say to a step under way that something else is desired; it answers all the same."""

    call: int
    module: str
    process: int = 1


class Write(msgspec.Struct, frozen=True, gc=False):
    """Make these changes durable together, then say `Written` or `Unwritten`."""

    ticket: int
    changes: tuple[Change, ...]
    if_revision: int | None = None
    author: Author | None = None


class Reply(msgspec.Struct, frozen=True, gc=False):
    """The answer to a `Proposed`: the revision that holds it, or why it was refused."""

    ticket: int
    revision: int | None
    refusal: str | None = None
    cause: Cause | None = None


class PlanReply(msgspec.Struct, frozen=True, gc=False):
    """The answer to a `Considered`: what that would start, or why it cannot be."""

    ticket: int
    plan: Plan | None
    refusal: str | None = None
    cause: Cause | None = None


class Tell(msgspec.Struct, frozen=True, gc=False):
    """Seal this message and send it to a neighbour."""

    peer: str
    message: Message


class Start(msgspec.Struct, frozen=True, gc=False):
    """Start a process of this module, beside others; `Ready` or `Exited` follows.

    `process` numbers it among the module's; `settings` are a JSON object, or nothing.
    """

    module: str
    process: int = 1
    settings: str = ""


class Stop(msgspec.Struct, frozen=True, gc=False):
    """End this process of a module, which has no calls under way; `Exited` follows."""

    module: str
    process: int


class FailedStep(msgspec.Struct, frozen=True, gc=False):
    """A step that is barred, and what was known and remembered when it failed."""

    path: str
    observed: dict[str, str]
    remembered: dict[str, str]


class SearchPlan(msgspec.Struct, frozen=True, gc=False):
    """Have the planner asked this in a worker process; `PlanFound` or `PlanFailed` follows.

    It is a whole problem (semantics.md, Problem) with its start and goal. No look whose path is
    `barred` comes first, and no step is taken as it `failed`; `states_max` bounds the states of
    each search. A worker that has not answered by `deadline_at` is ended.
    """

    id: int
    variables: dict[str, tuple[str, ...]]
    attributes: dict[str, str | None]
    looks: tuple[Look, ...]
    steps: tuple[Step, ...]
    observed: dict[str, str]
    remembered: dict[str, str]
    goal: dict[str, str]
    barred: tuple[str, ...]
    failed: tuple[FailedStep, ...]
    states_max: int
    deadline_at: int


class Publish(msgspec.Struct, frozen=True, gc=False):
    """These entities changed, in this order, each in what `types` has at its place."""

    entities: tuple[EntityId, ...]
    types: tuple[Types, ...]


class SaveDesired(msgspec.Struct, frozen=True, gc=False):
    """An agent's whole desired layer, to be found again by its next process; not waited for."""

    epoch: int
    revision: int
    entities: tuple[StoredEntity, ...]


class FetchList(msgspec.Struct, frozen=True, gc=False):
    """Ask a neighbour which entities it tells us of, in which versions; `Listed` follows."""

    peer: str


class FetchSchema(msgspec.Struct, frozen=True, gc=False):
    """Ask a neighbour for its kinds' numbers and its modules; `Learnt` follows."""

    peer: str


class Recall(msgspec.Struct, frozen=True, gc=False):
    """Have a neighbour send these entities again."""

    peer: str
    entities: tuple[EntityId, ...]


class RequestRetry(msgspec.Struct, frozen=True, gc=False):
    """Have a node's agent try this entity again at once: a person asks."""

    peer: str
    entity: EntityId


# What a neighbour is asked, beside what is sent to it.
Errand = FetchList | FetchSchema | Recall | RequestRetry
Effect = (
    Call
    | Cancel
    | StopStep
    | Write
    | Reply
    | PlanReply
    | Tell
    | Start
    | Stop
    | SearchPlan
    | Publish
    | SaveDesired
    | FetchList
    | FetchSchema
    | Recall
    | RequestRetry
)
