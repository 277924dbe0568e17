"""All that can happen: the only input of the core."""

from collections.abc import Mapping

import msgspec

from haptera.model.chain import NoChain, ToldChain
from haptera.model.changes import Author, Cause, Change
from haptera.model.declared.remote_schema import ToldSchema
from haptera.model.entity import EntityId
from haptera.model.messages import Mark, Message, ObservedUpdate, Permit, ReportNotes
from haptera.model.parts import Manifest
from haptera.model.walltime import AgeMs


class Proposed(msgspec.Struct, frozen=True, gc=False):
    """Somebody asks for changes of desired state; answered by `Reply` with the same ticket."""

    ticket: int
    changes: tuple[Change, ...]
    if_revision: int | None = None
    author: Author | None = None


class Considered(msgspec.Struct, frozen=True, gc=False):
    """Somebody asks what would come of these changes; a `PlanReply` of the same ticket follows."""

    ticket: int
    changes: tuple[Change, ...]


class Written(msgspec.Struct, frozen=True, gc=False):
    """A `Write` is durable; `revision` is the number of the last of its changes."""

    ticket: int
    revision: int


class Unwritten(msgspec.Struct, frozen=True, gc=False):
    """A `Write` was refused, or failed (a full disk); nothing of it holds."""

    ticket: int
    text: str
    cause: Cause = Cause.STORAGE


class Answered(msgspec.Struct, frozen=True, gc=False):
    """A look found this. `at` is when the module began to look, or when that was so, in ns.

    `note` is what it saw besides, in words for people.
    """

    call: int
    value: str
    at: int
    note: str | None = None


class Ended(msgspec.Struct, frozen=True, gc=False):
    """A step returned; what came of it only a look can tell."""

    call: int


class Failed(msgspec.Struct, frozen=True, gc=False):
    """A look or step failed, in the module's own words.

    With `refused` the device itself said that the command had no effect and will have none. A gate
    that drains its node, `drained_ms` so far, lets nothing begin, and waits for what runs.
    """

    call: int
    text: str
    refused: bool = False
    drained_ms: int | None = None


class WatchReported(msgspec.Struct, frozen=True, gc=False):
    """A watch reported a value unasked."""

    call: int
    value: str
    at: int
    note: str | None = None


class ReadingReported(msgspec.Struct, frozen=True, gc=False):
    """A program outside haptera says what it read of an entity, and when; `by` is its name."""

    entity: EntityId
    variable: str
    value: str
    by: str
    at: int
    note: str | None = None


class Ready(msgspec.Struct, frozen=True, gc=False):
    """A module's process serves calls.

    `version` is what it says of itself, `manifest` what it declares; None: as it was loaded.
    """

    module: str
    process: int = 1
    version: str | None = None
    manifest: Manifest | None = None


class Progressed(msgspec.Struct, frozen=True, gc=False):
    """A step that is under way says how far it is: in words, and as a share of 1 if it knows."""

    call: int
    text: str
    done: float | None = None


class LoopBlocked(msgspec.Struct, frozen=True, gc=False):
    """A process of a module serves none of its calls, or did not for a while: what it is at."""

    module: str
    text: str
    process: int = 1


class Exited(msgspec.Struct, frozen=True, gc=False):
    """A module's process is gone, with all its calls."""

    module: str
    text: str
    process: int = 1


class PlanFound(msgspec.Struct, frozen=True, gc=False):
    """A worker's answer to this search."""

    search: int
    answer: ToldChain | NoChain


class PlanFailed(msgspec.Struct, frozen=True, gc=False):
    """A search came to nothing: its worker could not be started, died, hung or spoke nonsense."""

    search: int
    text: str


class Enrolled(msgspec.Struct, frozen=True, gc=False):
    """A child got a session in this incarnation (parent), or this agent did (agent)."""

    peer: str
    incarnation: int


class Heard(msgspec.Struct, frozen=True, gc=False):
    """A neighbour's authentic message; `boot` is its process's boot-id."""

    peer: str
    boot: int
    message: Message
    arrived_at: int


class Alive(msgspec.Struct, frozen=True, gc=False):
    """Neighbours whose hello says what their last one said."""

    peers: tuple[str, ...]
    arrived_at: int


class Noticed(msgspec.Struct, frozen=True, gc=False):
    """The queue of jobs says whether nodes take jobs; None: it does not know these any more."""

    nodes: Mapping[str, str | None]


class Ticked(msgspec.Struct, frozen=True, gc=False):
    """The time that the engine asked to be woken at has come."""


class WallClockSet(msgspec.Struct, frozen=True, gc=False):
    """What people's clock shows: `wall_offset_ns` is its time less that of CLOCK_BOOTTIME.

    Told first of all, and again whenever the machine's wall clock was set.
    """

    wall_offset_ns: int


class Asked(msgspec.Struct, frozen=True, gc=False, tag="retry"):
    """A person asks that this entity be tried again now, whatever its back-off."""

    entity: EntityId


class Listed(msgspec.Struct, frozen=True, gc=False):
    """The layer that a neighbour's process tells us of: its mark, and all that counts in it.

    Without a mark there is no list: the neighbour could not be asked.
    """

    peer: str
    boot: int | None
    mark: Mark | None = None
    versions: tuple[tuple[EntityId, int], ...] = ()


class Learnt(msgspec.Struct, frozen=True, gc=False):
    """A neighbour's schema: its words are read from now on. None: it could not be asked."""

    peer: str
    schema: ToldSchema | None


class Recalled(msgspec.Struct, frozen=True, gc=False):
    """A neighbour asks for these entities again."""

    peer: str
    entities: tuple[EntityId, ...]


class Reported(msgspec.Struct, frozen=True, gc=False):
    """A parent below reports: what changed, and on which nodes it has a word.

    `nodes` says of each whether its agent is heard there, or further below; None: as before.
    """

    parent: str
    updates: tuple[ObservedUpdate, ...]
    nodes: Mapping[str, bool] | None
    arrived_at: int
    notes: ReportNotes | None = None


class Silenced(msgspec.Struct, frozen=True, gc=False):
    """A parent below has not reported for too long."""

    parent: str


class Released(msgspec.Struct, frozen=True, gc=False, tag="release"):
    """A person has seen why the brake is on, and lets disruptive steps go on.

    Or, of one `node`, that it never permits any: for a while they need no permit of its.
    """

    node: str | None = None


# What a person asks of one parent that another one keeps goes to that one.
HandedDown = Asked | Released


class NumberedRequest(msgspec.Struct, frozen=True, gc=False):
    """A request that is handed down, as the process that hands it down counts them.

    It is heeded within `left_ms`, or never.
    """

    number: int
    request: HandedDown
    left_ms: AgeMs


class ReportAnswer(msgspec.Struct, frozen=True, gc=False):
    """What the parent above says to a report: to the asks for room, and what people ask there.

    `handed` are the requests that the process `boot` does not know to have been heeded, in the
    order of their numbers.
    """

    boot: int
    handed: tuple[NumberedRequest, ...] = ()
    permits: tuple[Permit, ...] = ()


class ToldFromAbove(msgspec.Struct, frozen=True, gc=False):
    """The parent above has answered a report that was sent then."""

    answer: ReportAnswer
    sent_at: int


Event = (
    Proposed
    | Considered
    | Written
    | Unwritten
    | Answered
    | Ended
    | Failed
    | WatchReported
    | ReadingReported
    | Progressed
    | Ready
    | LoopBlocked
    | Exited
    | PlanFound
    | PlanFailed
    | Enrolled
    | Heard
    | Alive
    | Learnt
    | Listed
    | Recalled
    | Reported
    | Silenced
    | Noticed
    | Ticked
    | Asked
    | Released
    | ToldFromAbove
    | WallClockSet
)
