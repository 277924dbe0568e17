"""Routes of freezes: what is frozen, freezing more of it, thawing some."""

import secrets
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.requests.body import as_json, read_body
from haptera.api.requests.endpoint import (
    Caller,
    Handler,
    author,
    check_covered,
)
from haptera.core.desired.thaw import Thaw, thaw
from haptera.core.state.allowance import READ_AT_ONCE, READING_EACH
from haptera.core.state.selecting import Declared
from haptera.kinds import KINDS
from haptera.kinds.meaning import check_selector
from haptera.kinds.rules import freeze
from haptera.kinds.rules.rule import parse_rule
from haptera.model.changes import (
    Change,
    Declare,
    SetDesired,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.declared.desired_check import check_plain, did_you_mean
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code, HapteraError
from haptera.planner.domain.pieces import Pieces, slices
from haptera.rest import endpoints
from haptera.rest.schemas import FreezeBody, FreezeView, Frozen, Thawed, ThawView
from haptera.runtime.over_turns import over_turns
from haptera.runtime.store.optimistic_write import write
from haptera.selectors.covering import covers
from haptera.selectors.names import nearest_name
from haptera.selectors.nodeset import fold
from haptera.selectors.selector import Selector, fold_entities, parse_selector
from haptera.selectors.selector_ast import NODE, Pattern, parts_of
from haptera.selectors.text_cursor import place

_KIND: Final = freeze.kind.name
_WHERE: Final = "the selector of the freeze"
_NAME_BYTES: Final = 4
# How many freezes an error names.
TOLD_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class FreezeRoutes:
    """`wall_s` is people's time, in seconds since 1970."""

    backend: Backend
    wall_s: Callable[[], float]

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.FREEZES, self.all)
        yield Handler(endpoints.FREEZE, self.freeze)
        yield Handler(endpoints.THAW, self.thaw)

    async def all(self, _request: Request, caller: Caller) -> Response:
        """All freezes; to a limited token those of its entities, which alone they then name."""
        there = await self._there()
        return as_json(Frozen(await over_turns(there.views(there.freezes, caller.within))))

    async def freeze(self, request: Request, caller: Caller) -> Response:
        """Freeze; the same selector of the same person anew says why, and for how long, anew."""
        body = await read_body(request, FreezeBody)
        check_covered(_selector(body.selector), caller)
        wanted = self._wanted(body)
        owner = f"user:{caller.name}"
        there = await self._there()
        await over_turns(_check_there(there, body, caller.within))
        known = there.freeze_of(owner, body.selector)

        async def make() -> tuple[Change, ...]:
            # At once, so that it is written also where others write all the time.
            held = None if known is None else self.backend.desires.declared(known.entity)
            return tuple(_freezing(held, wanted, owner))

        by = replace(author(request, caller), why=body.reason)
        await write(self.backend.desires, make, by)
        there = await self._there()
        if (mine := there.freeze_of(owner, body.selector)) is None:
            raise HapteraError(
                f"{body.selector} was thawed meanwhile", do="freeze it again", code=Code.CONFLICT
            )
        (view,) = await over_turns(there.views([mine], caller.within))
        return as_json(view)

    async def thaw(self, request: Request, caller: Caller) -> Response:
        """Let go on what a selector means; of what was frozen with it, the rest stays frozen."""
        by = _selector(request.query_params.get("selector", ""))
        check_covered(by, caller)
        thawed: list[tuple[StoredEntity, Thaw]] = []
        before: list[EntityId] = []

        async def make() -> tuple[Change, ...]:
            there = await self._there()
            before[:] = await over_turns(there.held(caller.within))
            thawed[:] = await over_turns(_thawed(there, by, caller.within))
            return tuple(_thawing(one, left, f"user:{caller.name}") for one, left in thawed)

        revision, _ = await write(self.backend.desires, make, author(request, caller))
        there = await self._there()
        views = await over_turns(there.views(there.freezes, caller.within))
        after = set(await over_turns(there.held(caller.within)))
        free = await over_turns(_free(before, after))
        told = [ThawView(_of(one), one.owner, left.thawed, left.rest) for one, left in thawed]
        return as_json(Thawed(revision, told, free, views))

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

    async def _there(self) -> "_There":
        return await over_turns(_read(await self.backend.desires.stored()))


@dataclass(frozen=True, slots=True)
class _There:
    """What is declared, with its attributes, and the freezes that select something, by id.

    What is `acted_on` has a state that parts could change, and can be frozen.
    """

    entities: dict[EntityId, Mapping[str, str]]
    freezes: list[StoredEntity]
    acted_on: list[Declared]

    def freeze_of(self, owner: str, selector: str) -> StoredEntity | None:
        """Somebody's freeze with this selector."""
        mine = (one for one in self.freezes if (one.owner, _of(one)) == (owner, selector))
        return next(mine, None)

    def views(
        self, freezes: Iterable[StoredEntity], within: Selector | None
    ) -> Pieces[list[FreezeView]]:
        views = list[FreezeView]()
        for one in freezes:
            held = yield from self.meant([parse_selector(_of(one))], within)
            if (view := _view(one, held, within)) is not None:
                views.append(view)
        return views

    def held(self, within: Selector | None) -> Pieces[list[EntityId]]:
        """What any freeze holds, as far as somebody may see."""
        return self.meant([parse_selector(_of(one)) for one in self.freezes], within)

    def meant(
        self, selectors: Collection[Selector], within: Selector | None = None
    ) -> Pieces[list[EntityId]]:
        """What any of these selects, of what can be frozen and somebody may see."""
        found = list[EntityId]()
        for some in slices(self.acted_on, READ_AT_ONCE):
            seen = some if within is None else filter(within.means, some)
            found += (one.id for one in seen if any(each.means(one) for each in selectors))
            yield READING_EACH * (1 + len(selectors)) * len(some)
        return found


def _read(stored: Iterable[StoredEntity]) -> Pieces[_There]:
    there, kinds = _There({}, [], []), _acted_on()

    def attributes(name: str) -> Mapping[str, str] | None:
        return there.entities.get(node_id(name))

    for some in slices(stored, READ_AT_ONCE):
        there.entities.update((one.entity, one.attributes) for one in some)
        there.freezes.extend(one for one in some if one.entity.kind == _KIND and _of(one))
        acted_on = (one.entity for one in some if one.entity.kind in kinds)
        there.acted_on.extend(Declared(one, attributes) for one in acted_on)
        yield READING_EACH * len(some)
    there.freezes.sort(key=lambda one: one.entity)
    return there


def _check_there(there: _There, body: FreezeBody, within: Selector | None) -> Pieces[None]:
    """See that it freezes something, and that each node is there that it names itself.

    Raises:
        HapteraError: a name is mistyped, or a pattern means nothing and may not.
    """
    selector = _selector(body.selector)
    if missing := sorted(one for one in _named(selector) if node_id(one) not in there.entities):
        seen = there.acted_on if within is None else filter(within.means, there.acted_on)
        nodes = (one.id.name for one in seen if one.id.kind == NODE)
        guess = did_you_mean(nearest_name(missing[0], nodes))
        do = f"{guess}see which there are: haptera get node"
        raise HapteraError(
            f"no such node: {fold(missing)}", where=_WHERE, do=do, code=Code.SELECTS_NOTHING
        )
    if not body.even_if_none and not (yield from there.meant([selector])):
        raise HapteraError(
            f"{selector} selects nothing that is declared",
            where=_WHERE,
            do="select what exists; for what will be declared later, use a pattern and"
            " --even-if-none (even_if_none)",
            code=Code.SELECTS_NOTHING,
        )


def _thawed(
    there: _There, by: Selector, within: Selector | None
) -> Pieces[list[tuple[StoredEntity, Thaw]]]:
    """The freezes that are thawed in part: for a limited token, those that it covers.

    Raises:
        HapteraError: there are none, or what is left of one cannot be said.
    """
    thawed = list[tuple[StoredEntity, Thaw]]()
    for one in there.freezes:
        held = parse_selector(_of(one))
        if within is not None and not covers(within, held):
            continue
        if (left := (yield from thaw(held, by, there.entities))) is not None:
            thawed.append((one, left))
    if not thawed:
        views = yield from there.views(there.freezes, within)
        raise HapteraError(f"nothing of {by} is frozen", do=_told(views), code=Code.NOT_FOUND)
    return thawed


def _free(before: Iterable[EntityId], after: Container[EntityId]) -> Pieces[list[str]]:
    """What was held and is not any more, by name."""
    names = list[str]()
    for some in slices(before, READ_AT_ONCE):
        names += (str(one) for one in some if one not in after)
        yield READING_EACH * len(some)
    return sorted(names)


def _selector(text: str) -> Selector:
    return check_selector(parse_rule(text))


def _named(selector: Selector) -> set[str]:
    """The nodes that it names one by one."""
    found = set[str]()
    for part in parts_of(selector.choice):
        if isinstance(part, Pattern) and part.on is not None and part.on.plain:
            found.update(one.name for one in part.on.members())
    return found


def _acted_on() -> set[str]:
    """The kinds of entities that parts change, and that can be frozen."""
    return {name for name, kind in KINDS.items() if kind.variables} - freeze.EXEMPT


def _check_acted_on(selector: Selector) -> None:
    acted_on = _acted_on()
    for part in parts_of(selector.choice):
        if isinstance(part, Pattern) and part.kind not in {None, *acted_on}:
            raise HapteraError(
                f"a {part.kind} cannot be frozen",
                where=place("selector", selector.text, part.at),
                do=f"freeze what it acts on: {' or '.join(sorted(acted_on))}",
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


def _view(
    one: StoredEntity, held: Collection[EntityId], within: Selector | None
) -> FreezeView | None:
    """A freeze, as shown; one that reaches further than `within` without the names of others.

    None where it is of nothing but others.
    """
    values = {name: desired.value for name, desired in one.desired.items()}
    selector = parse_selector(_of(one))
    text = selector.text
    if within is not None and not covers(within, selector):
        if not held:
            return None
        text = fold_entities(held)
    until_s = values.get(freeze.until_s.name)
    return FreezeView(
        str(one.entity),
        text,
        str(values.get(freeze.reason.name, "")),
        one.owner,
        None if until_s is None else int(until_s),
        len(held),
    )


def _told(views: Sequence[FreezeView]) -> str:
    """What is frozen, as advice to whom thaws something else."""
    if not views:
        return "nothing is frozen"
    named = [f"{one.selector} by {one.owner}" for one in views[:TOLD_MAX]]
    more = len(views) - len(named)
    return f"frozen is {', '.join(named)}" + (f", and {more} more" if more else "")
