"""Serving a controller: what it asks for, one thing after the other, within a share of our time."""

import asyncio
from collections import deque
from collections.abc import Iterator
from heapq import nsmallest
from typing import Final, Protocol, assert_never

from haptera.core.desired.ownership import declare, desire, undeclare
from haptera.core.state.allowance import READ_AT_ONCE, READING_EACH
from haptera.core.views.bus import Bus, Listener, news_of
from haptera.kinds import KINDS
from haptera.kinds.meaning import check_selector
from haptera.model.answers.views import EntityView
from haptera.model.changes import Author, Cause, Change, Desired, StoredEntity
from haptera.model.entity import EntityId, parse_entity
from haptera.model.errors import Code, ConflictError, HapteraError
from haptera.model.token_scope import Scope
from haptera.planner.domain.pieces import Pieces, slices
from haptera.runtime.over_turns import over_turns
from haptera.runtime.store.optimistic_write import Proposing, WriteError, write
from haptera.selectors.selector import Selector, parse_selector
from haptera.selectors.subscription import parse_wanted
from haptera.wire import control
from haptera.wire.control import Answer, Frame, Request, frame_of, parse_request
from haptera.wire.frame import Reject

# So many requests of one controller may wait; its link is held until there are fewer.
REQUESTS_MAX: Final = 32
WATCHES_MAX: Final = 16
# A view takes a few kB at most, so that these fit in a frame.
VIEWS_PER_FRAME: Final = 100
# After each request a controller's next one waits for this much longer than that one took: no
# controller takes more than a fifth of our time, whatever it asks for.
REST_PER_WORK: Final = 4
REST_S_MAX: Final = 1.0
# In whose names a controller may write beside its own.
USER: Final = "user:"


class Link(Protocol):
    """The way to a controller's process."""

    def send(self, frame: Frame) -> None: ...

    def hold(self) -> None:
        """Take nothing more from it for now."""

    def go_on(self) -> None: ...


class Readable(Protocol):
    """The entities as controllers see them: answered at once, from memory."""

    def entity(self, entity: EntityId) -> EntityView | None: ...

    def means(self, selector: Selector, entity: EntityId) -> bool:
        """Whether this entity is there, and meant."""


class Writable(Proposing, Protocol):
    """The desired layer, as controllers read and change it."""

    def declared(self, entity: EntityId) -> StoredEntity | None:
        """The stored entity; None where it is not declared."""


class Source(Protocol):
    """The state that controllers read and write, and its changes."""

    @property
    def queries(self) -> Readable: ...

    @property
    def desires(self) -> Writable: ...

    @property
    def bus(self) -> Bus: ...


class _Watch:
    """One watch: what it has not received yet, and whether it has asked for more."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.asked = True
        # The revision of the picture that is being sent.
        self.revision = 0


class Control:
    """One controller's process, as the daemon serves it. What it writes belongs to its name."""

    def __init__(self, name: str, source: Source, link: Link) -> None:
        self._owner = f"controller:{name}"
        self._source = source
        self._link = link
        self._watches: dict[int, _Watch] = {}
        self._requests: deque[Request] = deque()
        self._work = asyncio.Event()

    def take(self, frame: Frame) -> None:
        """The controller asks for something; it is answered later, each in its turn.

        Raises:
            ValueError: it means nothing.
        """
        match parse_request(frame):
            case Reject():
                op = frame.get("op")
                raise ValueError(f"it sent a frame {op!r} that is not known")
            case request:
                self._requests.append(request)
                self._work.set()
        if len(self._requests) == REQUESTS_MAX:
            self._link.hold()

    async def run(self) -> None:
        """Answer for ever."""
        now = asyncio.get_running_loop().time
        try:
            while True:
                await self._work.wait()
                began = now()
                await self._serve_one()
                await asyncio.sleep(min(REST_S_MAX, REST_PER_WORK * (now() - began)))
        finally:
            for watch in self._watches.values():
                watch.listener.close()

    async def _serve_one(self) -> None:
        """A request, if there is one; else a watcher that has asked and can be answered."""
        if self._requests:
            request = self._requests.popleft()
            if len(self._requests) == REQUESTS_MAX - 1:
                self._link.go_on()
            try:
                await self._serve(request)
            except HapteraError as error:
                self._refuse(request.id, str(error), conflict=_is_conflict(error))
            return
        for number, watch in self._watches.items():
            if watch.asked and watch.listener.ready:
                self._tell(number, watch)
                # Others come first next time.
                self._watches[number] = self._watches.pop(number)
                return
        self._work.clear()

    async def _serve(self, request: Request) -> None:
        match request:
            case control.Watch():
                self._listen(request)
            case control.Next(id=number):
                if (watch := self._watches.get(number)) is None:
                    raise HapteraError(f"nothing is watched under {number}", code=Code.NOT_FOUND)
                watch.asked = True
            case control.Unwatch(id=number):
                if (watch := self._watches.pop(number, None)) is not None:
                    watch.listener.close()
            case control.ReadEntities():
                self._say(await self._read(request))
            case control.WriteDesired():

                async def make() -> tuple[Change, ...]:
                    return tuple(self._changes(request))

                by = Author(self._owner, may=Scope.WRITE)
                revision, _ = await write(self._source.desires, make, by, request.if_revision)
                self._say(control.WrittenAt(request.id, revision))
            case _:
                assert_never(request)

    def _listen(self, request: control.Watch) -> None:
        if request.id in self._watches or len(self._watches) >= WATCHES_MAX:
            raise HapteraError(
                f"{request.id} is watched already, or {WATCHES_MAX} others are", code=Code.LIMIT
            )
        wanted = parse_wanted(request.types, request.kinds, request.select)
        check_selector(wanted.selector)
        if not wanted.selector.by_name:
            what = f"{wanted.selector}: a controller watches entities by their names"
            raise HapteraError(what, do="watch them by name, and filter by their state")
        self._watches[request.id] = _Watch(self._source.bus.listen(wanted, self._work.set))

    def _tell(self, number: int, watch: _Watch) -> None:
        if watch.listener.gathers:
            watch.revision = self._source.desires.revision()
        batch = watch.listener.drain(VIEWS_PER_FRAME)
        assert batch is not None
        watch.asked = False
        views, types, gone, _ = news_of(batch, self._source.queries.entity)
        cursor = str(batch.cursor) if batch.whole else None
        told_now = control.ControlTold(
            number, batch.fresh, views, types, gone, cursor, watch.revision
        )
        self._say(told_now)

    async def _read(self, request: control.ReadEntities) -> control.Views:
        selector = check_selector(parse_selector(request.select))
        found = await over_turns(self._first(selector, request.after))
        page = found[:VIEWS_PER_FRAME]
        views = [view for one in page if (view := self._source.queries.entity(one)) is not None]
        more = str(page[-1]) if len(found) > len(page) else None
        return control.Views(request.id, views, more, self._source.desires.revision())

    def _first(self, selector: Selector, after: str | None) -> Pieces[list[EntityId]]:
        """The first that it means after one, by name: one more than a frame takes."""
        found = list[EntityId]()
        for some in slices(self._source.bus.there(), READ_AT_ONCE):
            meant = (
                one
                for one in some
                if (after is None or str(one) > after) and self._source.queries.means(selector, one)
            )
            found = nsmallest(VIEWS_PER_FRAME + 1, [*found, *meant], key=str)
            yield 2 * READING_EACH * len(some)
        return found

    def _changes(self, request: control.WriteDesired) -> Iterator[Change]:
        """What it changes of what is there now: nodes come before what is on them, and go after."""
        owner = self._owner if request.owner is None else request.owner
        if owner != self._owner and not owner.startswith(USER):
            raise HapteraError(
                f"{owner} is not a user", do="write in your own name, or in a user's"
            )
        declared = {parse_entity(name): one for name, one in request.declare.items()}
        for entity in sorted(declared, key=_nodes_first):
            held = self._source.desires.declared(entity)
            there = None if held is None else held.attributes
            yield from declare(KINDS, entity, there, declared[entity], self._owners(held))
        desired = {parse_entity(name): patch for name, patch in request.desired.items()}
        for entity in sorted(desired, key=_nodes_first):
            held = self._source.desires.declared(entity)
            if held is None and entity not in declared:
                raise HapteraError(f"there is no {entity}", do="declare it", code=Code.NOT_FOUND)
            kind = KINDS[entity.kind]
            yield from desire(kind, entity, _values(held), desired[entity], owner)
        going = {parse_entity(name) for name in request.undeclare}
        for entity in sorted(going, key=_nodes_first, reverse=True):
            held = self._source.desires.declared(entity)
            staying = [one for one in self._on(entity) if one not in going]
            yield from undeclare(entity, _values(held), staying, self._owners(held))

    def _owners(self, held: StoredEntity | None) -> tuple[str | None, str]:
        return None if held is None else held.owner, self._owner

    def _on(self, entity: EntityId) -> list[EntityId]:
        """What is declared on a node."""
        if entity.kind != "node":
            return []
        on_it = sorted(one for one in self._source.bus.there() if one.node == entity.name)
        return [one for one in on_it if self._source.desires.declared(one) is not None]

    def _refuse(self, number: int, text: str, *, conflict: bool = False) -> None:
        self._say(control.WriteRefused(number, text, conflict))

    def _say(self, answer: Answer) -> None:
        try:
            self._link.send(frame_of(answer))
        except ValueError as error:
            self._link.send(frame_of(control.WriteRefused(answer.id, str(error), conflict=False)))


def _is_conflict(error: HapteraError) -> bool:
    stale = isinstance(error, WriteError) and error.cause is Cause.STALE
    return stale or isinstance(error, ConflictError)


def _values(held: StoredEntity | None) -> dict[str, Desired]:
    return {} if held is None else held.desired


def _nodes_first(entity: EntityId) -> tuple[bool, str]:
    return entity.kind != "node", str(entity)
