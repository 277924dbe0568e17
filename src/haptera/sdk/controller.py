"""How a controller is declared, and what it is handed: the cluster, to read and to write to."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final, Generic, TypeVar

import msgspec

from haptera.model.answers.views import EntityView
from haptera.model.entity import EntityId, check_name
from haptera.model.errors import Code, DeclarationError, HapteraError
from haptera.model.news import News
from haptera.selectors.selector import ALL
from haptera.wire import control
from haptera.wire.control import Answer, Frame, Request, frame_of, parse_answer
from haptera.wire.frame import Reject

Settings = TypeVar("Settings")
Patch = Mapping[str, str | int | None]

# Settings that a controller does not declare: none.
NO_SETTINGS: Final[Mapping[str, Any]] = {}


class Conflict(Exception):  # noqa: N818 - it is what stands in the way, not a fault of ours
    """What was to be written belongs to another owner, or changed meanwhile; its words say who."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes since the last news of the watch, and all entities as they are `now`.

    With `fresh` it begins, or begins anew, and any entity may have changed. `types` says in what
    each changed; `revision` numbers the desired state, for `write`; `cursor` the changes.
    """

    now: Mapping[str, EntityView]
    changed: tuple[str, ...]
    types: Mapping[str, frozenset[News]]
    gone: tuple[str, ...]
    fresh: bool
    cursor: str
    revision: int


class Controller(Generic[Settings]):
    """A controller: a name, the shape of its settings, and one function that runs for ever.

    What it writes belongs to `controller:NAME`. Settings are a dataclass, or any other type that
    texts and numbers can be converted to.
    """

    def __init__(self, name: str, *, settings: type[Settings], version: str = "1") -> None:
        self.name = check_name(name)
        self.version = version
        self._settings = settings
        self._function: Run[Settings] | None = None

    def run(self, function: "Run[Settings]") -> "Run[Settings]":
        """Declare what it does, from its start on; where it returns or fails it is started anew."""
        if self._function is not None:
            raise DeclarationError(f"controller {self.name} has two functions", do="take one out")
        self._function = function
        return function

    @property
    def function(self) -> "Run[Settings]":
        if self._function is None:
            raise DeclarationError(
                f"controller {self.name} does nothing", do="write @controller.run above a function"
            )
        return self._function

    def settings(self, given: Mapping[str, object]) -> Settings:
        """What a site file gives, in the declared shape.

        Raises:
            HapteraError: it does not fit.
        """
        try:
            # A site file's values are texts, numbers among them.
            return msgspec.convert(dict(given), self._settings, strict=False)
        except msgspec.ValidationError as error:
            raise DeclarationError(
                str(error), where=f"settings of controller {self.name}", do="see what it declares"
            ) from None


class Cluster(Generic[Settings]):
    """The cluster as a controller sees it: `watch`, `read`, `write`.

    What it writes belongs to `owner`. `send` takes frames to the daemon, whose own are handed to
    `take`; `wall_s` tells people's time, in seconds since 1970.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        send: Callable[[Frame], None],
        wall_s: Callable[[], float],
    ) -> None:
        self.owner = f"controller:{name}"
        self.settings = settings
        self.wall_s = wall_s
        self._send = send
        self._ids = count(1)
        self._asked: dict[int, asyncio.Future[Answer]] = {}

    async def watch(
        self,
        *,
        types: Iterable[str] | None = None,
        kinds: Iterable[str] | None = None,
        select: str | None = None,
        tick_s: float | None = None,
    ) -> AsyncIterator[Changes]:
        """All that is wanted as it is now, then whatever changes, as often as it is asked for.

        What changes while nobody asks is reported once, as it is then. Where nothing changes for
        `tick_s`, that is reported too: nothing but time has passed, and deadlines with it.

        Raises:
            HapteraError: there is no such type, or the selector is none.
        """
        watch = next(self._ids)
        now: dict[str, EntityView] = {}
        request: Request = control.Watch(watch, _listed(types), _listed(kinds), select)
        last: Changes | None = None
        coming = asyncio.ensure_future(self._told(request))
        try:
            while True:
                if last is not None:
                    await asyncio.wait({coming}, timeout=tick_s)
                if last is not None and not coming.done():
                    yield replace(last, changed=(), types={}, gone=(), fresh=False)
                    continue
                last = _changes(now, await coming)
                yield last
                coming = asyncio.ensure_future(self._told(control.Next(watch)))
        finally:
            coming.cancel()
            self._send(frame_of(control.Unwatch(watch)))

    async def _told(self, request: Request) -> list[control.ControlTold]:
        """What a watch tells next; a snapshot counts once it is whole."""
        told = [await self._ask_for(request, control.ControlTold)]
        while told[-1].cursor is None:
            told.append(await self._ask_for(control.Next(request.id), control.ControlTold))
        return told

    async def read(self, select: str | EntityId = ALL) -> dict[str, EntityView]:
        """How these entities are now.

        Raises:
            HapteraError: the selector is none.
        """
        found: dict[str, EntityView] = {}
        after: str | None = None
        while True:
            request = control.ReadEntities(next(self._ids), str(select), after)
            views = await self._ask_for(request, control.Views)
            found |= {view.entity: view for view in views.entities}
            if (after := views.after) is None:
                return found

    async def write(
        self,
        desired: Mapping[str, Patch],
        *,
        declare: Mapping[str, Mapping[str, str]] = NO_SETTINGS,
        undeclare: Iterable[str] = (),
        if_revision: int | None = None,
        owner: str | None = None,
    ) -> int:
        """Have this desired, all or nothing, and return the revision that holds it.

        A value sets, None unsets; what is so already is no change. `declare` names entities with
        their attributes, `undeclare` those that go. With `if_revision`, it is written only if
        nothing that is desired, of whatever entity, changed since. With an `owner`, a user's
        values stay that user's: what another owns, this controller too, is a conflict.

        Raises:
            Conflict: another owns a value or an entity, or something changed since.
            HapteraError: an entity, variable or value is not there; or it cannot be stored.
        """
        request = control.WriteDesired(
            next(self._ids),
            {str(entity): dict(patch) for entity, patch in desired.items()},
            {str(entity): dict(one) for entity, one in declare.items()},
            [str(entity) for entity in undeclare],
            if_revision,
            owner,
        )
        return (await self._ask_for(request, control.WrittenAt)).revision

    def may(self, view: EntityView, name: str) -> bool:
        """Whether this value of the entity is this controller's to write, as it stood there."""
        held = view.desired.get(name)
        return held is None or held.owner == self.owner

    def take(self, frame: Frame) -> None:
        """The daemon answers.

        Raises:
            HapteraError: that is no answer.
        """
        answer = parse_answer(frame)
        if isinstance(answer, Reject):
            raise HapteraError(
                f"the daemon said {frame.get('op')!r}, which means nothing",
                code=Code.VERSION_MISMATCH,
            )
        asked = self._asked.get(answer.id)
        if asked is not None and not asked.done():
            asked.set_result(answer)

    async def _ask_for(self, request: Request, shape: type["Shape"]) -> "Shape":
        """The answer, which has this shape or is a refusal."""
        asked: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[request.id] = asked
        try:
            self._send(frame_of(request))
            answer = await asked
        finally:
            del self._asked[request.id]
        if isinstance(answer, control.WriteRefused):
            raise (Conflict if answer.conflict else HapteraError)(answer.text)
        if not isinstance(answer, shape):
            raise HapteraError(
                f"the daemon answered {type(answer).__name__} out of turn",
                code=Code.VERSION_MISMATCH,
            )
        return answer


Shape = TypeVar("Shape", control.ControlTold, control.Views, control.WrittenAt)
Run = Callable[[Cluster[Settings]], Coroutine[Any, Any, None]]


def _changes(now: dict[str, EntityView], told: list[control.ControlTold]) -> Changes:
    """What these answers tell together; `now` is brought up to date."""
    # A snapshot may begin anew in the middle of another: the last one counts.
    begin = max((at for at, one in enumerate(told) if one.fresh), default=None)
    if begin is not None:
        now.clear()
        told = told[begin:]
    changed: dict[str, None] = {}
    gone: dict[str, None] = {}
    for one in told:
        for view in one.entities:
            now[view.entity] = view
            changed[view.entity] = None
        for entity in one.gone:
            now.pop(entity, None)
            gone[entity] = None
    types = {entity: frozenset(some) for one in told for entity, some in one.types.items()}
    last = told[-1]
    return Changes(
        dict(now),
        tuple(changed),
        types,
        tuple(gone),
        begin is not None,
        str(last.cursor),
        last.revision,
    )


def _listed(words: Iterable[str] | None) -> list[str] | None:
    return None if words is None else [str(word) for word in words]
