"""What the API needs of the process that it runs in."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
from cryptography.x509 import CertificateSigningRequest

from haptera.core.figures import Figures
from haptera.core.views.bus import Bus
from haptera.model.answers.explained import Explained
from haptera.model.answers.graph import DrawingView
from haptera.model.answers.past import Changed, Deed, Happened, Page, PastView
from haptera.model.answers.plan import Plan
from haptera.model.answers.story import StoryView
from haptera.model.answers.views import (
    AlikeView,
    BrakeView,
    EntityDetail,
    EntityView,
    Summary,
    TreeView,
)
from haptera.model.changes import Author, Change, StoredEntity
from haptera.model.effects import Reply
from haptera.model.entity import EntityId
from haptera.model.events import HandedDown, ReadingReported
from haptera.model.reading import Reading, Series
from haptera.model.samples import Point, Sample
from haptera.queue.entry import Submission
from haptera.queue.job import Job
from haptera.queue.news import JobNews
from haptera.queue.queue import JobQueue
from haptera.rest.schemas import ReplicaView, ReportTaken
from haptera.rest.unclaimed import InvitationView, UnclaimedView
from haptera.runtime.identity.tokens import ApiToken, Bearer, Certified, MintedToken
from haptera.runtime.network.peer_messages import ExecAnswer, ExecAsked, LogPlace, LogTold
from haptera.runtime.store.feed import Follower
from haptera.runtime.store.keyed import Held, KeptAnswer, RequestKey
from haptera.selectors.selector import Selector

# What is to be run, for whom, and what the audit says of it: what comes of it.
Execute = Callable[[ExecAsked, str, str], AsyncGenerator[ExecAnswer, None]]


class JobDesk(Protocol):
    """The queue of jobs. Its changes are durable once they return.

    All may raise HapteraError; then nothing changed.
    """

    @property
    def queue(self) -> JobQueue: ...

    @property
    def turn(self) -> int:
        """Grows with each change."""

    @property
    def news(self) -> JobNews:
        """Which jobs changed, in whose order."""

    @property
    def pools(self) -> Mapping[str, str]:
        """Where each pool stands, in words."""

    async def change(self, seen: int) -> int:
        """Wait for another turn than the one that was seen."""

    async def submit(self, one: Submission) -> list[Job]: ...

    async def cancel(self, keys: Iterable[int], reason: str) -> list[Job]:
        """As `JobQueue.cancel`, of these as they are now: nothing changes before that."""

    async def prioritize(self, key: int, priority: int) -> Job: ...

    def why(self, job: Job) -> str: ...


class SampleDesk(Protocol):
    """The numbers that machines report."""

    def last(self, entity: EntityId) -> Mapping[Series, Sample]:
        """The last of each series of an entity, where it is fresh."""

    def all_last(self) -> Iterable[tuple[EntityId, Mapping[Series, Sample]]]:
        """As `last`, of all entities that have some."""

    def reading(self, kind: str, series: str) -> Reading | None:
        """The declaration of a series of a kind; None where no module declares it."""

    async def points(
        self,
        entity: EntityId,
        series: Series,
        since: float,
        until: float,
        step_s: int | None = None,
    ) -> list[Point]:
        """The points of a series in this time, those of each step as one."""


class Queries(Protocol):
    """Reads of entities from memory: of one at once, of all spread over many turns."""

    async def entities(self, selectors: Collection[Selector]) -> Iterable[EntityView]:
        """Those that all of these mean, by name; each is looked at when it is taken."""

    async def texts(self, selectors: Collection[Selector]) -> Iterable[msgspec.Raw]:
        """As `entities`, each as JSON."""

    def means(self, selector: Selector, entity: EntityId) -> bool:
        """Whether this entity is there, and meant."""

    def entity(self, entity: EntityId) -> EntityView | None: ...

    def nearest(self, entity: EntityId) -> str | None:
        """The one that was meant, perhaps, where there is none of this name."""

    def explained(self, entity: EntityId) -> Explained | None:
        """Why its chain is as it is, or what else can be had; takes some milliseconds."""

    async def detail(self, entity: EntityId) -> EntityDetail | None:
        """As `entity`, and the word of its node's agent, or why that could not be had in time."""

    async def graph(self, entity: EntityId) -> DrawingView | None:
        """Its class drawn, with its chain marked; None where there is no such entity.

        Raises:
            HapteraError: there is more than can be drawn.
        """

    def story(self, entity: EntityId) -> StoryView | None:
        """The last decisions on it; None where there is no such entity."""

    async def alike(self, selectors: Collection[Selector]) -> list[AlikeView]:
        """The entities that all of these mean, grouped where they stand alike."""

    async def summary(self, within: Selector | None = None) -> Summary: ...

    async def figures(self) -> Figures: ...

    def brake(self) -> BrakeView: ...


class Desires(Protocol):
    """The desired layer, and changes of it. `propose` and `preview` take their time."""

    @property
    def epoch(self) -> int: ...

    @property
    def radius_percent(self) -> int:
        """So much of the nodes may be disrupted without the digest of the plan."""

    def revision(self) -> int: ...

    def declared(self, entity: EntityId) -> StoredEntity | None:
        """The stored entity; None where it is not declared."""

    async def stored(self) -> Sequence[StoredEntity]:
        """The desired layer, of one revision.

        It is handed to another thread, so nothing in it may change later.
        """

    async def propose(
        self, changes: tuple[Change, ...], if_revision: int | None, author: Author
    ) -> Reply: ...

    async def preview(self, changes: tuple[Change, ...]) -> Plan:
        """What these changes would start; nothing is written."""


class Orders(Protocol):
    """Requests that change nothing desired, and the keys that have a request done only once."""

    async def request(self, request: HandedDown, who: str, what: str) -> None:
        """Have the node's parent do this, once it is written down who asked for what.

        Raises:
            HapteraError: the parent that would have to is silent, or it cannot be written down.
        """

    @property
    def execute(self) -> Execute:
        """Has a node run a command, once it is in the audit. To close it ends the command.

        Raises:
            HapteraError: the audit cannot be written.
        """

    async def invite(self, node: str) -> InvitationView:
        """Mint an invitation: by it, a node that already runs enrols.

        Raises:
            HapteraError: it cannot be written down.
        """

    async def evict(self, node: str) -> int | None:
        """End a node's session, whose incarnation that was; None where it has none.

        Raises:
            HapteraError: it cannot be written down.
        """

    async def begin_keyed(self, key: RequestKey, sha256: bytes) -> Held | None:
        """Keep an idempotency key durably, and None; or what is known of it already.

        Raises:
            HapteraError: it cannot be stored; nothing may be done by it.
        """

    async def end_keyed(self, key: RequestKey, answer: KeptAnswer | None) -> None:
        """Keep what a request with a key was answered; None: forget that there was one.

        Raises:
            HapteraError: it cannot be stored.
        """


class Records(Protocol):
    """The history: changes of what is desired, events, and the audit."""

    def past(
        self, chosen: Callable[[EntityId], bool], *, before: int | None, count_max: int
    ) -> Page:
        """What was changed, latest first; takes a while, and may be asked in another thread."""

    async def at(self, chosen: Callable[[EntityId], bool], at_s: float) -> list[PastView]:
        """How what is chosen was at a time.

        Raises:
            HapteraError: that is no longer known.
        """

    def happened(self, chosen: Callable[[EntityId], bool], count_max: int) -> list[Happened]:
        """As `past`: the last that happened to what is chosen, latest first."""

    def happened_since(self, names: Collection[str], since: float) -> Iterable[Happened]:
        """As `past`: steps that ended, and what was seen of these variables, in order of time."""

    def written(self, revision: int) -> list[Changed]:
        """As `past`: all changes of the write that made a revision; none if it is not known."""

    def deeds(self, within: Selector | None, count_max: int) -> list[Deed]:
        """As `past`: the last that people and programs have asked for, latest first.

        With `within`, what concerns nothing that it means is left out, and not counted.
        """

    def note(self, who: str, what: str, entity: EntityId | None = None) -> None:
        """Write down that somebody asked for something that changes nothing desired.

        `entity` is what it is about, where that is one.
        """


class Outputs(Protocol):
    """Files that modules, services, jobs and images leave behind."""

    async def log(self, entity: EntityId, after: LogPlace | None) -> LogTold:
        """A part of the log of a module or a service: after a place, or the end of it.

        Raises:
            HapteraError: there is nothing, or its node's agent cannot be asked.
        """

    async def inventory(self, image: str) -> bytes | None:
        """The files of an image as JSON, by its name or its digest; None if they are not known."""

    def strangers(self) -> list[UnclaimedView]:
        """The machines that asked this parent for an address and got none, the latest first.

        Raises:
            HapteraError: they cannot be read.
        """


class TokenDesk(Protocol):
    """The tokens by which people and programs ask."""

    def check(self, text: str) -> Bearer | None:
        """The bearer of a token and its rights; None for a token that is unknown or expired."""

    def held(self) -> list[ApiToken]:
        """All that hold, the oldest first."""

    async def mint(self, bearer: Bearer, ttl_s: float) -> MintedToken:
        """Make a token, once it is durable.

        Raises:
            HapteraError: it cannot be stored, or there are too many.
        """

    async def certify(
        self, bearer: Bearer, ttl_s: float, request: CertificateSigningRequest
    ) -> Certified:
        """As `mint`: a certificate that stands for one."""

    async def revoke(self, key: str) -> ApiToken | None:
        """Let a token hold no more, at once and for good; None where there is none.

        Raises:
            HapteraError: it does not hold, but would again after a restart.
        """


class ReadingDesk(Protocol):
    """Readings that programs outside haptera report."""

    def check_reading(self, one: ReadingReported) -> None:
        """See that this can be read of an entity that is declared, and is for this parent.

        Raises:
            HapteraError: it is not.
        """

    async def observe(self, readings: Sequence[ReadingReported], who: str) -> None:
        """Take in what others have read and was checked, once it is written down who reports.

        Raises:
            HapteraError: it cannot be written down.
        """


class TreeDesk(Protocol):
    """The parents around this one, and how far they follow its store."""

    async def view(self) -> TreeView:
        """This parent and those below it."""

    async def faults(self) -> list[str]:
        """Faults of haptera itself, in words: of its store, and parents that are silent."""

    async def replica(self, follower: Follower, log: int, place: int, files: str) -> ReplicaView:
        """What a follower of the store lacks that has all up to a place, and these files.

        Raises:
            HapteraError: it cannot be read now.
        """

    async def report(self, body: bytes) -> ReportTaken:
        """Take in what a parent below keeps.

        Raises:
            HapteraError: it is no report.
        """

    def durability(self) -> str:
        """Where what is acknowledged now is durable: `local`, or `replicated`."""


@dataclass(frozen=True, slots=True)
class Backend:
    """All of it, by subject."""

    queries: Queries
    desires: Desires
    orders: Orders
    records: Records
    outputs: Outputs
    readings: ReadingDesk
    tokens: TokenDesk
    tree: TreeDesk
    jobs: JobDesk
    samples: SampleDesk
    bus: Bus
