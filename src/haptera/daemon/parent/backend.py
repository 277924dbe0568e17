"""What the API asks of the daemon that it runs in: answers from state, and changes to propose."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, Protocol

import msgspec
from cryptography.x509 import CertificateSigningRequest

from haptera.api.backend import Execute
from haptera.controllers import groups
from haptera.core.desired.desired_at import desired_before
from haptera.core.engine import Engine
from haptera.core.figures import Figures, figures
from haptera.core.state.row import EntityState
from haptera.core.state.selecting import by_name, means, meant
from haptera.core.sync.parents import asked_of, subject_of
from haptera.core.views.bus import Bus
from haptera.core.views.course import course_of
from haptera.core.views.query import detail, explained, nearest, summary, view
from haptera.core.views.standing import alike
from haptera.core.views.texts import text_of
from haptera.daemon.channels.inviting import Inviting
from haptera.daemon.logs import Logs
from haptera.daemon.parent.follow_ups import follow_ups
from haptera.daemon.parent.observing import observe
from haptera.daemon.parts import absent_manifests
from haptera.daemon.queue.job_logs import JobLogs
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.daemon.samples.sample_board import SampleBoard
from haptera.daemon.tree.below import Below
from haptera.daemon.tree.replicas import Replicas
from haptera.model.answers.explained import Explained
from haptera.model.answers.graph import DrawingView
from haptera.model.answers.past import Happened, PastView
from haptera.model.answers.plan import RADIUS_PERCENT, Plan
from haptera.model.answers.story import StoryView
from haptera.model.answers.views import (
    AlikeView,
    BrakeView,
    EntityDetail,
    EntityView,
    Summary,
    TreeView,
    detail_of,
)
from haptera.model.changes import Author, Cause, Change, StoredEntity
from haptera.model.effects import PlanReply, Reply
from haptera.model.entity import EntityId
from haptera.model.errors import Code, HapteraError
from haptera.model.events import Considered, Event, HandedDown, Proposed
from haptera.model.text import whole_number
from haptera.modules.image.store import store_of
from haptera.modules.netboot.strangers import read_strangers
from haptera.planner.explain.drawing import drawing
from haptera.planner.explain.graph import graphs_of
from haptera.rest.unclaimed import UnclaimedView
from haptera.runtime.clock import now_ns, wall_s
from haptera.runtime.identity.pki import Authority, issue_client
from haptera.runtime.identity.tokens import ApiToken, Bearer, Certified, MintedToken
from haptera.runtime.network.peer_messages import (
    Answer,
    EntityAsked,
    EntityTold,
    LogAsked,
    LogPlace,
    LogTold,
    Request,
    Unable,
)
from haptera.runtime.over_turns import over_turns
from haptera.runtime.store import event_log_reader as event_log
from haptera.runtime.store.keyed import Held, KeptAnswer, RequestKey
from haptera.runtime.store.optimistic_write import WriteError, refused
from haptera.runtime.store.sqlite_writer import Failure
from haptera.runtime.store.store import Store, kept
from haptera.selectors.selector import Selector

# How long a proposal waits for the disk before its caller hears so.
PROPOSAL_WITHIN_S: Final = 30.0
# So often all that is desired is read over many turns, if it changes meanwhile; then it is in one.
READ_AGAIN_MAX: Final = 3
# The engine itself waits less long for plans; but it may be behind.
PREVIEW_WITHIN_S: Final = 30.0
# What tells this process's numbers of changes from those of others with the same store.
_TAG_BYTES: Final = 4
# How long a person waits for the word of a node's agent.
AGENT_WITHIN_S: Final = 2.0

# A node's name, what it is asked, for how long: a request to its agent.
AskAgent = Callable[[str, Request, float], Awaitable[Answer]]


class HeldSessions(Protocol):
    """The sessions with nodes, by their names."""

    def level(self, peer: str) -> str | None: ...

    async def evict(self, peer: str) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Around:
    """What else a parent has: `history` is the folder of what happened."""

    deliver: Callable[[Iterable[Event]], None]
    ask: AskAgent
    execute: Execute
    sessions: HeldSessions
    inviting: Inviting
    logs: Logs
    history: Path
    authority: Authority
    replicas: Replicas
    below: Below
    jobs: ParentQueue
    job_logs: JobLogs
    samples: SampleBoard


class EngineBackend:
    """One engine as the API sees it; all of it is used in the loop's own thread."""

    def __init__(self, engine: Engine, store: Store, epoch: int, around: Around) -> None:
        self._history, self._authority, self._logs = around.history, around.authority, around.logs
        self._engine, self._store = engine, store
        # What the API asks of these is theirs to answer.
        self.past, self.written, self.deeds = store.past, store.written, store.deeds
        self.happened_since = partial(event_log.happenings_since, around.history)
        self.check_token, self.tokens = store.check_token, store.tokens
        self.check_reading = engine.reported.check
        self.epoch, self.radius_percent = epoch, RADIUS_PERCENT
        tag = secrets.token_hex(_TAG_BYTES)
        self.bus = Bus(f"{epoch}-{tag}", lambda: (row.id for row in engine.table))
        self._deliver, self._ask_agent, self.execute = around.deliver, around.ask, around.execute
        self._sessions, self.evict = around.sessions, around.sessions.evict
        self.invite = around.inviting.invite
        self._replicas, self.replica = around.replicas, around.replicas.tell
        self._below, self.report = around.below, around.below.take
        self.jobs, self._job_logs, self.samples = around.jobs, around.job_logs, around.samples
        self.observe = partial(observe, store, around.deliver)
        self._tickets = count(1)
        self._answers: dict[int, asyncio.Future[Reply | PlanReply]] = {}

    def revision(self) -> int:
        return self._engine.table.revision

    async def entities(self, selectors: Collection[Selector]) -> Iterable[EntityView]:
        return (view(row, now_ns(), self._level(row)) for row in await self._named(selectors))

    async def texts(self, selectors: Collection[Selector]) -> Iterable[msgspec.Raw]:
        return (text_of(row, now_ns(), self._level(row)) for row in await self._named(selectors))

    def means(self, selector: Selector, entity: EntityId) -> bool:
        return means(self._engine.table, selector, entity, now_ns())

    def entity(self, entity: EntityId) -> EntityView | None:
        row = self._engine.table.get(entity)
        return None if row is None else detail(row, now_ns(), self._level(row))

    async def _named(self, selectors: Collection[Selector]) -> Iterator[EntityState]:
        named = await over_turns(by_name(await self._meant(selectors)))
        return (row for _, row in named if self._engine.table.get(row.id) is row)

    def _level(self, row: EntityState) -> str | None:
        return self._sessions.level(row.id.name) if row.id.kind == "node" else None

    def nearest(self, entity: EntityId) -> str | None:
        return nearest(self._engine.table, entity)

    def explained(self, entity: EntityId) -> Explained | None:
        engine = self._engine
        row = engine.table.get(entity)
        if row is None:
            return None
        node, absent = engine.table.node_of(row), absent_manifests(engine.catalog)
        return explained(row, node, engine.catalog, absent, now_ns())

    async def detail(self, entity: EntityId) -> EntityDetail | None:
        """As `entity`, and the word of its node's agent, or why that could not be had."""
        here = self.entity(entity)
        if here is None:
            return None
        if entity.node is None:
            return detail_of(here)
        match await self._ask_agent(entity.node, EntityAsked(entity), AGENT_WITHIN_S):
            case EntityTold(there) if there.entity == str(entity):
                return detail_of(here, agent=there)
            case Unable(text):
                return detail_of(here, unasked=text)
            case _:
                return detail_of(here, unasked="the agent answered with something else")

    async def graph(self, entity: EntityId) -> DrawingView | None:
        """Its class drawn, with its chain marked."""
        row = self._engine.table.get(entity)
        if row is None:
            return None
        domain, course = course_of(row, self._engine.table.node_of(row), self._engine.catalog)

        def draw() -> DrawingView:
            return drawing(domain, graphs_of(domain), str(entity), course)

        return await asyncio.to_thread(draw)  # A large class takes a while.

    def story(self, entity: EntityId) -> StoryView | None:
        row = self._engine.table.get(entity)
        return None if row is None else self._engine.rounds.decisions.story.of(row, now_ns())

    async def inventory(self, image: str) -> bytes | None:
        return await asyncio.to_thread(store_of(self._authority.directory).inventory, image)

    async def log(self, entity: EntityId, after: LogPlace | None) -> LogTold:
        """What this has written after a place, or the end of it; of a node, its console."""
        asked = LogAsked(entity, after=after)
        if entity.kind == "job":
            answer = await self._ask_holder(asked)
        elif entity.node is None:
            known = (row.id for row in self._engine.table.of_cluster(entity.kind))
            answer = self._logs.answer(asked, known)
        elif entity.kind == "node":
            declared = [entity] if self._engine.table.get(entity) is not None else []
            answer = self._logs.answer(asked, declared)
        else:
            answer = await self._ask_agent(entity.node, asked, AGENT_WITHIN_S)
        match answer:
            case LogTold():
                return answer
            case Unable(text):
                raise HapteraError(text)
            case _:
                raise HapteraError(
                    "the agent answered with something else", code=Code.VERSION_MISMATCH
                )

    async def _ask_holder(self, asked: LogAsked) -> Answer:
        """What the node says that has a job, or had it last; what was taken, where that is gone."""
        job = self.jobs.queue.job(whole_number(asked.entity.name) or 0)
        if job.token is None:
            raise HapteraError(f"{asked.entity} has not run yet", code=Code.NOT_FOUND)
        answer = await self._ask_agent(job.holder or "nobody", asked, AGENT_WITHIN_S)
        if isinstance(answer, Unable):
            return self._job_logs.told(job, asked.after) or answer
        return answer

    def declared(self, entity: EntityId) -> StoredEntity | None:
        return self._engine.table.declared(entity)

    async def alike(self, selectors: Collection[Selector]) -> list[AlikeView]:
        rows = await self._meant(selectors)
        return await over_turns(alike((row.id, row.stance) for row in rows))

    async def summary(self, within: Selector | None = None) -> Summary:
        rows = [*self._engine.table] if within is None else await self._meant([within])
        reports = self._engine.neighbours.reports
        assert reports is not None, "an agent has no such backend"
        return await over_turns(summary(rows, reports.subtree))

    async def tree(self) -> TreeView:
        return TreeView(await over_turns(self._below.parents()), self._replicas.feed.lag)

    async def faults(self) -> list[str]:
        return [*self._store.faults(), *await over_turns(self._below.faults())]

    async def figures(self) -> Figures:
        return await over_turns(figures(self._engine, now_ns()))

    async def _meant(self, selectors: Collection[Selector]) -> list[EntityState]:
        return await over_turns(meant(self._engine.table, selectors, now_ns()))

    async def stored(self) -> Sequence[StoredEntity]:
        for _ in range(READ_AGAIN_MAX):
            revision = self.revision()
            found = await over_turns(self._engine.table.storing())
            if self.revision() == revision:
                return found
        return self._engine.table.stored()

    async def at(self, chosen: event_log.Chosen, at_s: float) -> list[PastView]:
        """How what is chosen was at a time."""
        stored = await self.stored()
        # Nothing has come in between: it is of this revision.
        revision = self.revision()
        now = [one for one in stored if chosen(one.entity)]

        def read() -> list[PastView]:
            since = self._store.changed_since(chosen, at_s, revision)
            return event_log.past_views(
                desired_before(now, since), event_log.known_at(self._history, chosen, at_s)
            )

        return await asyncio.to_thread(read)  # Files are read.

    def happened(self, chosen: event_log.Chosen, count_max: int) -> list[Happened]:
        return event_log.last_happenings(self._history, chosen, count_max=count_max)

    def note(self, who: str, what: str, entity: EntityId | None = None) -> None:
        self._store.note(who, what, entity)

    async def propose(
        self, changes: tuple[Change, ...], if_revision: int | None, author: Author
    ) -> Reply:
        ticket = next(self._tickets)
        asked = Proposed(ticket, changes, if_revision, author)
        reply = await self._answer(ticket, asked, PROPOSAL_WITHIN_S)
        if isinstance(reply, Reply):
            return reply
        text = "the disk does not answer; it may still be written"
        return Reply(ticket, None, text, Cause.STORAGE)

    async def preview(self, changes: tuple[Change, ...]) -> Plan:
        ticket, whole = next(self._tickets), (*changes, *self._follow_ups(changes))
        shown = await self._answer(ticket, Considered(ticket, whole), PREVIEW_WITHIN_S)
        assert isinstance(shown, PlanReply), "the engine keeps its own time"
        if shown.plan is None:
            raise refused(shown.refusal, shown.cause or Cause.INVALID)
        return shown.plan

    def _follow_ups(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """What the controller of groups would write of it, where there is that controller."""
        if groups.controller.name not in self._engine.catalog.controllers():
            return ()
        rows = (row for row in self._engine.table if row.kind.name in groups.KINDS)
        return follow_ups({str(row.id): view(row, now_ns()) for row in rows}, changes, wall_s())

    async def _answer(
        self, ticket: int, asked: Proposed | Considered, within_s: float
    ) -> Reply | PlanReply | None:
        """What the engine answers; None where it takes too long."""
        answer: asyncio.Future[Reply | PlanReply] = asyncio.get_running_loop().create_future()
        self._answers[ticket] = answer
        self._deliver([asked])
        try:
            async with asyncio.timeout(within_s):
                return await answer
        except TimeoutError:
            return None
        finally:
            self._answers.pop(ticket, None)

    def brake(self) -> BrakeView:
        return self._engine.safety.unrest.brake(now_ns())

    async def request(self, request: HandedDown, who: str, what: str) -> None:
        if (node := asked_of(request)) is not None:
            self._below.check_reach(node)
        kept(await asyncio.wrap_future(self._store.note(who, what, subject_of(request), request)))
        followed = asyncio.Event()
        self._replicas.feed.answer(followed.set)
        await followed.wait()
        self._deliver([request])

    def durability(self) -> str:
        return self._replicas.feed.durability

    async def mint_token(self, bearer: Bearer, ttl_s: float) -> MintedToken:
        minted = self._store.new_token(bearer, ttl_s)
        kept(await asyncio.wrap_future(self._store.keep_token(minted.row)))
        self._store.hold_token(minted.row)
        return minted

    async def certify(
        self, bearer: Bearer, ttl_s: float, request: CertificateSigningRequest
    ) -> Certified:
        row = (await self.mint_token(bearer, ttl_s)).row
        certificate = issue_client(self._authority, request, row.id, row.made_s, ttl_s)
        return Certified(row, certificate, self._authority.ca_pem)

    async def revoke_token(self, key: str) -> ApiToken | None:
        revoked = self._store.revoke_token(key)
        if revoked is None:
            return None
        row, written = revoked
        kept(await asyncio.wrap_future(written))
        return row

    def strangers(self) -> list[UnclaimedView]:
        found = read_strangers(self._logs.directory)
        return [UnclaimedView(**msgspec.structs.asdict(one)) for one in found]

    async def begin_keyed(self, key: RequestKey, sha256: bytes) -> Held | None:
        found = await asyncio.wrap_future(self._store.begin_keyed(key, sha256))
        if isinstance(found, Failure):
            raise WriteError(Cause.STORAGE, found.text, do="check the disk, then try again")
        return found

    async def end_keyed(self, key: RequestKey, answer: KeptAnswer | None) -> None:
        kept(await asyncio.wrap_future(self._store.end_keyed(key, answer)))

    def answered(self, answer: Reply | PlanReply) -> None:
        """The engine answers what was proposed or considered."""
        waiting = self._answers.get(answer.ticket)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)
