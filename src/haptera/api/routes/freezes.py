"""Routes of freezes: what is frozen, freezing more of it, thawing some."""

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.requests.body import as_json, read_body
from haptera.api.requests.endpoint import NOT_FOUND, UNWRITTEN, Caller, Contract, Endpoint, author
from haptera.api.requests.query import THAWED, WHY
from haptera.core.desired.thaw import Thaw, thaw
from haptera.core.state.selecting import Declared
from haptera.kinds import KINDS
from haptera.kinds.meaning import check_selector
from haptera.kinds.rules import freeze
from haptera.kinds.rules.rule import parse_rule
from haptera.model.changes import (
    Author,
    Change,
    Declare,
    SetDesired,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.declared.desired_check import check_plain
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code, HapteraError
from haptera.rest.schemas import FreezeBody, FreezeView, Frozen, Thawed, ThawView
from haptera.runtime.identity.tokens import Scope
from haptera.runtime.store.optimistic_write import write
from haptera.selectors.nodeset import fold
from haptera.selectors.selector import Selector, parse_selector
from haptera.selectors.selector_ast import NODE, Pattern, parts_of
from haptera.selectors.text_cursor import place

_KIND: Final = freeze.kind.name
_WHERE: Final = "the selector of the freeze"
_NAME_BYTES: Final = 4
# Of these kinds are the entities that parts change, and that can be frozen.
_ACTED_ON: Final = {name for name, kind in KINDS.items() if kind.variables} - freeze.EXEMPT
# How many freezes an error names.
TOLD_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class FreezeRoutes:
    """`wall_s` is people's time, in seconds since 1970."""

    backend: Backend
    wall_s: Callable[[], float]

    def endpoints(self) -> Iterator[Endpoint]:
        contract = Contract(gives=Frozen)
        yield Endpoint("GET", "/v1/freezes", Scope.READ, self.all, contract)
        contract = Contract(takes=FreezeBody, gives=FreezeView, problems=UNWRITTEN, keyed=True)
        yield Endpoint("POST", "/v1/freezes", Scope.WRITE, self.freeze, contract)
        contract = Contract(
            gives=Thawed, queries=(THAWED, WHY), problems=(NOT_FOUND, *UNWRITTEN), keyed=True
        )
        yield Endpoint("DELETE", "/v1/freezes", Scope.WRITE, self.thaw, contract)

    async def all(self, _request: Request, _caller: Caller) -> Response:
        """All freezes."""
        return as_json(Frozen(self._views()))

    async def freeze(self, request: Request, caller: Caller) -> Response:
        """Freeze; the same selector of the same person anew says why, and for how long, anew."""
        body = await read_body(request, FreezeBody)
        wanted = self._wanted(body)
        self._check_there(body)
        owner = f"user:{caller.name}"

        async def make() -> tuple[Change, ...]:
            mine = [one for one in self._freezes() if one.owner == owner]
            held = next((one for one in mine if _of(one) == body.selector), None)
            return tuple(_freezing(held, wanted, owner))

        await write(self.backend, make, Author(owner, body.reason))
        views = [one for one in self._views() if one.owner == owner]
        view = next((one for one in views if one.selector == body.selector), None)
        if view is None:
            raise HapteraError(
                f"{body.selector} was thawed meanwhile", do="freeze it again", code=Code.CONFLICT
            )
        return as_json(view)

    async def thaw(self, request: Request, caller: Caller) -> Response:
        """Let go on what a selector means; of what was frozen with it, the rest stays frozen."""
        by = _selector(request.query_params.get("selector", ""))
        thawed: list[tuple[StoredEntity, Thaw]] = []
        before: list[EntityId] = []

        async def make() -> tuple[Change, ...]:
            before[:] = self._held()
            thawed[:] = self._thawed(by)
            return tuple(_thawing(one, left, f"user:{caller.name}") for one, left in thawed)

        revision, _ = await write(self.backend, make, author(request, caller))
        after = set(self._held())
        free = [str(one) for one in before if one not in after]
        told = [ThawView(_of(one), one.owner, left.thawed, left.rest) for one, left in thawed]
        return as_json(Thawed(revision, told, free, self._views()))

    def _check_there(self, body: FreezeBody) -> None:
        """See that it freezes something, and that each node is there that it names itself.

        Raises:
            HapteraError: a name is mistyped, or a pattern means nothing and may not.
        """
        selector, entities = _selector(body.selector), self._acted_on()
        nodes = {one.id.name for one in entities if one.id.kind == NODE}
        if missing := sorted(_named(selector) - nodes):
            do = "see which there are: haptera get node"
            raise HapteraError(
                f"no such node: {fold(missing)}", where=_WHERE, do=do, code=Code.SELECTS_NOTHING
            )
        if not body.even_if_none and not any(map(selector.means, entities)):
            raise HapteraError(
                f"{selector} selects nothing that is declared",
                where=_WHERE,
                do="select what exists; for what will be declared later, use a pattern and"
                " --even-if-none (even_if_none)",
                code=Code.SELECTS_NOTHING,
            )

    def _wanted(self, body: FreezeBody) -> dict[str, str | int]:
        _check_acted_on(_selector(body.selector))
        wanted = {
            freeze.of.name: body.selector,
            freeze.reason.name: check_plain(freeze.reason, body.reason),
        }
        if body.for_s is not None:
            if body.for_s < 1:
                raise HapteraError(f"{body.for_s} s is too short", do="freeze it for 1 s at least")
            until_s = int(self.wall_s()) + body.for_s
            wanted[freeze.until_s.name] = check_plain(freeze.until_s, until_s)
        return wanted

    def _thawed(self, by: Selector) -> list[tuple[StoredEntity, Thaw]]:
        """The freezes of which something is thawed.

        Raises:
            HapteraError: there are none, or what is left of one cannot be said.
        """
        entities = {one.entity: one.attributes for one in self.backend.stored()}
        found = [(one, thaw(parse_selector(_of(one)), by, entities)) for one in self._freezes()]
        thawed = [(one, left) for one, left in found if left is not None]
        if not thawed:
            raise HapteraError(
                f"nothing of {by} is frozen", do=_told(self._views()), code=Code.NOT_FOUND
            )
        return thawed

    def _freezes(self) -> list[StoredEntity]:
        """All that select something."""
        stored = [one for one in self.backend.stored() if one.entity.kind == _KIND]
        return sorted((one for one in stored if _of(one)), key=lambda one: one.entity)

    def _held(self) -> list[EntityId]:
        """The declared entities that any freeze holds."""
        selectors = [parse_selector(_of(one)) for one in self._freezes()]
        acted_on = self._acted_on()
        return [one.id for one in acted_on if any(held.means(one) for held in selectors)]

    def _acted_on(self) -> list[Declared]:
        """What is declared, has a state that parts could change, and can be frozen."""
        declared = {one.entity: one.attributes for one in self.backend.stored()}
        ids = sorted((one for one in declared if one.kind in _ACTED_ON), key=str)
        return [Declared(one, lambda name: declared.get(node_id(name))) for one in ids]

    def _views(self) -> list[FreezeView]:
        entities = self._acted_on()
        return [_view(one, entities) for one in self._freezes()]


def _selector(text: str) -> Selector:
    return check_selector(parse_rule(text))


def _named(selector: Selector) -> set[str]:
    """The nodes that it names one by one."""
    found = set[str]()
    for part in parts_of(selector.choice):
        if isinstance(part, Pattern) and part.on is not None and part.on.plain:
            found.update(one.name for one in part.on.members())
    return found


def _check_acted_on(selector: Selector) -> None:
    for part in parts_of(selector.choice):
        if isinstance(part, Pattern) and part.kind not in {None, *_ACTED_ON}:
            raise HapteraError(
                f"a {part.kind} cannot be frozen",
                where=place("selector", selector.text, part.at),
                do=f"freeze what it acts on: {' or '.join(sorted(_ACTED_ON))}",
            )


def _of(stored: StoredEntity) -> str:
    of = stored.desired.get(freeze.of.name)
    return "" if of is None else str(of.value)


def _freezing(
    held: StoredEntity | None, wanted: dict[str, str | int], owner: str
) -> Iterator[Change]:
    if held is None:
        held = StoredEntity(EntityId(_KIND, secrets.token_hex(_NAME_BYTES), None), {}, owner, {}, 0)
        yield Declare(held.entity, {}, owner)
    for name, value in wanted.items():
        if name not in held.desired or held.desired[name].value != value:
            yield SetDesired(held.entity, name, value, owner)
    for name in sorted(held.desired.keys() - wanted.keys()):
        yield UnsetDesired(held.entity, name)


def _thawing(held: StoredEntity, left: Thaw, owner: str) -> Change:
    """In place, so that what stays frozen is so all the while."""
    if left.rest is None:
        return Undeclare(held.entity)
    return SetDesired(held.entity, freeze.of.name, left.rest, owner)


def _view(one: StoredEntity, entities: Iterable[Declared]) -> FreezeView:
    values = {name: desired.value for name, desired in one.desired.items()}
    selector = parse_selector(_of(one))
    until_s = values.get(freeze.until_s.name)
    return FreezeView(
        str(one.entity),
        selector.text,
        str(values.get(freeze.reason.name, "")),
        one.owner,
        None if until_s is None else int(until_s),
        sum(selector.means(entity) for entity in entities),
    )


def _told(views: Sequence[FreezeView]) -> str:
    """What is frozen, as advice to whom thaws something else."""
    if not views:
        return "nothing is frozen"
    named = [f"{one.selector} by {one.owner}" for one in views[:TOLD_MAX]]
    more = len(views) - len(named)
    return f"frozen is {', '.join(named)}" + (f", and {more} more" if more else "")
