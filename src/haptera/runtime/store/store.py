"""The parent's durable state, `state.db`: what is desired, intents, sessions and tokens."""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from shutil import disk_usage
from sqlite3 import Connection
from typing import Final, Self, TypeVar
from uuid import UUID

from haptera.model.answers.past import Changed, Deed, Page
from haptera.model.changes import Cause, CloseIntent, Stored
from haptera.model.effects import Write
from haptera.model.entity import EntityId
from haptera.model.errors import Code, HapteraError
from haptera.model.events import HandedDown, Unwritten, Written
from haptera.queue.entry import QueueChanges, StoredQueue
from haptera.runtime.identity.lock import Lock, take
from haptera.runtime.identity.private import private_directory
from haptera.runtime.identity.sealing import UNSEALED, Sealer
from haptera.runtime.identity.tokens import (
    TOKEN_TTL_S,
    ApiToken,
    Bearer,
    MintedToken,
    Token,
    mint,
    parse_token,
)
from haptera.runtime.store import changes_sql, jobs_sql, keyed, sessions_sql
from haptera.runtime.store.changes_sql import AppliedWrite
from haptera.runtime.store.history_sql import (
    read_changes,
    read_changes_since,
    read_deeds,
    read_write,
)
from haptera.runtime.store.journaled import JournaledConnection
from haptera.runtime.store.keyed import Held, KeptAnswer, RequestKey
from haptera.runtime.store.schema_sql import open_database
from haptera.runtime.store.sessions import SavedSession
from haptera.runtime.store.sessions_sql import BootToken, Claimed, ClaimRefused
from haptera.runtime.store.sqlite_writer import Failure, Shipped, Writer, WriterJob
from haptera.selectors.selector import Selector

_log = logging.getLogger(__name__)
STATE_FILE: Final = "state.db"
# With less on its disk it is about to be refused what it writes.
FREE_BYTES_MIN: Final = 1 << 20
_NOBODY: Final[Mapping[str, int]] = {}
# How long the few who wait for the writer (start-up, minting a token) do so.
ANSWER_WITHIN_S: Final = 30.0

Answer = TypeVar("Answer")
Deliver = Callable[[Written | Unwritten], None]


class Store:
    """One process's hold on a state file; only `open`, `load`, `mint_token` and `close` wait.

    `deliver` gets the answer to each `submit`, from the writer's thread (hand in one that posts
    to a loop). `wall_s` reads wall time: for people, and for when a token expires. `shipped` gets
    what each commit wrote before its answers are delivered, for files that follow.
    """

    @classmethod
    def open(
        cls,
        path: Path,
        sealer: Sealer = UNSEALED,
        *,
        deliver: Deliver,
        wall_s: Callable[[], float],
        pages_max: int | None = None,
        shipped: Shipped | None = None,
    ) -> Self:
        """Open the file, made where there is none, and keep other processes out.

        The secrets of sessions are sealed in it by `sealer`.

        Raises:
            HapteraError: it is in use, damaged, not ours or of a later version; or sealed with a
                key that is not given.
        """
        private_directory(path.parent)
        held = take(path)
        try:
            connection = open_database(path, pages_max=pages_max)
            with ExitStack() as if_unsealed:
                if_unsealed.callback(connection.close)
                sessions_sql.seal_sessions(connection, sealer)
                jobs_sql.desire_duties(connection, wall_s())
                jobs_sql.desire_work(connection)
                if_unsealed.pop_all()
            return cls(connection, path, sealer, held, deliver, wall_s, shipped)
        except BaseException:
            held.release()
            raise

    def __init__(
        self,
        connection: JournaledConnection,
        path: Path,
        sealer: Sealer,
        held: Lock,
        deliver: Deliver,
        wall_s: Callable[[], float],
        shipped: Shipped | None,
    ) -> None:
        self._path = path
        self._sealer = sealer
        self._lock = held
        self._deliver = deliver
        self._wall_s = wall_s
        self._minted: dict[str, BootToken] = {}
        self._tokens = {token.id: token for token in sessions_sql.load_tokens(connection)}
        self._writer = Writer(connection, path.name, shipped)

    def faults(self) -> list[str]:
        """Why it cannot be written, in words, as far as is known without trying."""
        fault = self._writer.fault
        with suppress(OSError):  # a disk that cannot be asked says so at the next write
            free_bytes = disk_usage(self._path.parent).free
            if fault is None and free_bytes < FREE_BYTES_MIN:
                fault = f"{self._path.name}: its disk has {free_bytes} bytes left"
        if fault is None:
            return []
        return [f"nothing can be changed: {fault}: see to the parent's disk at {self._path.parent}"]

    def close(self) -> None:
        """Commit what is queued, then let go of the file."""
        self._writer.close()
        self._lock.release()

    def load(self) -> Stored:
        return self._answer(changes_sql.load)

    def submit(self, write: Write) -> None:
        """Queue a write; `deliver` gets `Written` once it is durable, or `Unwritten`."""
        work = partial(changes_sql.apply, write=write, wall_s=self._wall_s())
        refusal = self._writer.put(WriterJob(work, partial(self._submitted, write)))
        if refusal is not None:
            self._deliver(Unwritten(write.ticket, refusal.text, refusal.cause))

    def past(
        self, chosen: Callable[[EntityId], bool], *, before: int | None, count_max: int
    ) -> Page:
        """What was changed of what is chosen, read from the file: it may take a while.

        Raises:
            HapteraError: it cannot be read.
        """
        return read_changes(self._path, chosen, before=before, count_max=count_max)

    def changed_since(
        self, chosen: Callable[[EntityId], bool], at_s: float, revision: int
    ) -> list[Changed]:
        """As `past`: all changes after a time, up to a revision, latest first."""
        return read_changes_since(self._path, chosen, at_s, revision)

    def written(self, revision: int) -> list[Changed]:
        """As `past`: all changes of the write that made this revision; none if it is not known."""
        return read_write(self._path, revision)

    def deeds(self, within: Selector | None, count_max: int) -> list[Deed]:
        """As `past`: the last that people and programs have asked for, latest first."""
        return read_deeds(self._path, within, count_max=count_max)

    def note(
        self,
        author: str,
        what: str,
        entity: EntityId | None = None,
        request: HandedDown | None = None,
    ) -> Future[Failure | None]:
        """Write down that somebody asked for something that changes no desired state."""
        about = partial(changes_sql.note, who=author, what=what, entity=entity, request=request)
        return self._ask(partial(about, wall_s=self._wall_s()))

    def requests(self, within_s: float) -> list[tuple[HandedDown, float]]:
        """What people asked for within so long, and how many seconds ago; waits as `load`."""
        asked = partial(changes_sql.requests, wall_s=self._wall_s(), within_s=within_s)
        return self._answer(asked)

    def minted_for(self, intent_id: str) -> BootToken | None:
        """The enrolment token minted with this intent, once; its secret is kept nowhere else."""
        return self._minted.pop(intent_id, None)

    def token_for(self, intent_id: str) -> str | None:
        """The text of that token."""
        minted = self.minted_for(intent_id)
        return None if minted is None else minted.text

    def claim(
        self, token: Token, public_key: bytes, *, cluster: UUID, address: tuple[str, int]
    ) -> Future[Claimed | ClaimRefused | Failure]:
        """Decide on the claim of an enrolment token; answered once its session is durable."""
        return self._ask(
            partial(
                sessions_sql.claim,
                token=token,
                public_key=public_key,
                cluster=cluster,
                address=address,
                wall_s=self._wall_s(),
                sealer=self._sealer,
            )
        )

    def copy(self, done: Callable[[bytes | Failure], None]) -> None:
        """Have `done` get the whole file, as it is after some commit, in the writer's thread."""

        def work(connection: Connection) -> Connection:
            return connection

        def copied(result: Connection | Failure) -> None:
            done(result if isinstance(result, Failure) else result.serialize())

        if refusal := self._writer.put(WriterJob(work, copied)):
            done(refusal)

    def sessions(self) -> list[SavedSession]:
        return self._answer(partial(sessions_sql.load_sessions, sealer=self._sealer))

    def adopt(
        self, sessions: Sequence[SavedSession], counted: Mapping[str, int] = _NOBODY
    ) -> Future[list[SavedSession] | Failure]:
        """Take over sessions that other parents made; answered with those that were news.

        `counted` is how far they have come with the incarnations of nodes.
        """
        adopt = partial(sessions_sql.adopt, sessions=sessions, counted=counted)
        return self._ask(partial(adopt, sealer=self._sealer))

    def save_session(self, session: SavedSession) -> None:
        """Write a session's address and its peer's boot-id some time; nobody waits for it."""
        work = partial(sessions_sql.save_session, session=session, sealer=self._sealer)
        job = WriterJob(work, _session_saved)
        if refusal := self._writer.put(job):
            _session_saved(refusal)

    def drop_session(self, peer: str) -> Future[Failure | None]:
        """Have a node's session forgotten, and the tokens by which it could have another."""
        return self._ask(partial(sessions_sql.drop_session, peer=peer))

    def invite(self, node: str) -> Future[BootToken | Failure]:
        """Have a token made by which a node can enrol that runs already."""
        new = partial(sessions_sql.invite, node=node, good_for_s=TOKEN_TTL_S)
        return self._ask(partial(new, wall_s=self._wall_s()))

    def mint_token(self, bearer: Bearer, ttl_s: float) -> MintedToken:
        """Make a token of the API; its text is kept nowhere else. Waits for the disk.

        Raises:
            HapteraError: it cannot be stored, or there are too many.
        """
        minted = self.new_token(bearer, ttl_s)
        kept(self.keep_token(minted.row).result(ANSWER_WITHIN_S))
        self.hold_token(minted.row)
        return minted

    def new_token(self, bearer: Bearer, ttl_s: float) -> MintedToken:
        """A token that holds once it is kept."""
        token, now_s = mint(), self._wall_s()
        row = ApiToken(token.id, bearer, token.sha256, now_s, now_s + ttl_s)
        return MintedToken(row, token.text)

    def keep_token(self, row: ApiToken) -> Future[Failure | None]:
        """Have a token written; see `kept`."""
        return self._ask(partial(sessions_sql.save_token, token=row, wall_s=row.made_s))

    def hold_token(self, row: ApiToken) -> None:
        """A token is kept: it holds from now on."""
        self._tokens[row.id] = row

    def revoke_token(self, key: str) -> tuple[ApiToken, Future[Failure | None]] | None:
        """Let a token hold no more, from now on; None where there is none.

        Until that is written, it would hold again after a restart; see `kept`.
        """
        row = self._tokens.pop(key, None)
        if row is None:
            return None
        return row, self._ask(partial(sessions_sql.drop_token, key=key))

    def tokens(self) -> list[ApiToken]:
        """All tokens of the API that hold, the oldest first."""
        now_s = self._wall_s()
        held = [one for one in self._tokens.values() if now_s < one.expires_s]
        return sorted(held, key=lambda one: (one.made_s, one.id))

    def check_token(self, text: str) -> Bearer | None:
        """Whose token of the API this is, and what it allows; None where it is none, or expired."""
        token = parse_token(text)
        if token is None:
            return None
        row = self._tokens.get(token.id)
        if not token.fits(None if row is None else row.sha256) or row is None:
            return None
        return self.bearer_of(token.id)

    def begin_keyed(self, key: RequestKey, sha256: bytes) -> Future[Held | Failure | None]:
        """Have an idempotency key kept, or learn what is known of it."""
        return self._ask(partial(keyed.begin, key=key, sha256=sha256, wall_s=self._wall_s()))

    def end_keyed(self, key: RequestKey, answer: KeptAnswer | None) -> Future[Failure | None]:
        """Have the answer to a request with a key kept; None: have the key forgotten."""
        if answer is None:
            return self._ask(partial(keyed.forget, key=key))
        return self._ask(partial(keyed.finish, key=key, answer=answer))

    def load_queue(self) -> StoredQueue:
        return self._answer(jobs_sql.load_queue)

    def save_queue(self, changes: QueueChanges) -> Future[Failure | None]:
        """Have what changed in the queue of jobs written, all of it or nothing."""
        return self._ask(partial(jobs_sql.save_queue, changes=changes))

    def bearer_of(self, key: str) -> Bearer | None:
        """What the token of this id allows, for who has proven to hold it; None where it ended."""
        row = self._tokens.get(key)
        return None if row is None or self._wall_s() >= row.expires_s else row.bearer

    def _submitted(self, write: Write, result: AppliedWrite | Failure) -> None:
        """In the writer's thread: tokens are there before anybody hears of their intents."""
        if isinstance(result, Failure):
            self._deliver(Unwritten(write.ticket, result.text, result.cause))
            return
        self._minted.update(result.minted)
        for change in write.changes:
            if isinstance(change, CloseIntent):
                self._minted.pop(change.id, None)
        self._deliver(Written(write.ticket, result.revision))

    def _ask(self, work: Callable[[Connection], Answer]) -> Future[Answer | Failure]:
        future: Future[Answer | Failure] = Future()
        future.set_running_or_notify_cancel()  # what is queued can no longer be cancelled
        if refusal := self._writer.put(WriterJob(work, future.set_result)):
            future.set_result(refusal)
        return future

    def _answer(self, work: Callable[[Connection], Answer]) -> Answer:
        answer = self._ask(work).result(ANSWER_WITHIN_S)
        if isinstance(answer, Failure):
            # What is wrong with what was read says itself what to do.
            refused = answer.cause is Cause.INVALID
            do = None if refused else "check the disk, then try again"
            raise HapteraError(answer.text, do=do, code=Code.STORAGE_UNREADABLE)
        return answer


def kept(answer: Answer | Failure) -> Answer:
    """The answer of the store, which holds durably what it was asked to keep.

    Raises:
        HapteraError: it could not be written.
    """
    if isinstance(answer, Failure):
        raise HapteraError(answer.text, do="fix the cause, then try again")
    return answer


def _session_saved(failure: Failure | None) -> None:
    if failure is not None:
        _log.warning("a session's address is not in the store: %s", failure.text)
