"""One route of the API with the scope it needs; nothing is answered without one."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive, Send
from starlette.types import Scope as Connection

from haptera.api.requests.callers import Callers
from haptera.api.requests.meters import Meters
from haptera.core.desired.ownership import Claim
from haptera.model.changes import Author
from haptera.model.entity import EntityId, parse_entity
from haptera.model.errors import Code, DuplicateError, HapteraError, LimitError, UnknownNameError
from haptera.model.text import in_words, is_line, steering
from haptera.rest.endpoint import Endpoint, QueryName
from haptera.rest.query import WHY_CHARS_MAX, Query
from haptera.runtime.clock import now_ns
from haptera.runtime.identity.tokens import Scope
from haptera.selectors.covering import covers
from haptera.selectors.selector import Selector, parse_selector

# Of an answer to a change: where it is durable, `local` or `replicated`.
DURABILITY_HEADER: Final = b"haptera-durability"
Asked = TypeVar("Asked", bound=Query)

REMOVE: Final = "write it in one line, without control characters"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks; `name` is None where anybody may. All that they may see is `within`, if given.

    Where an answer takes long, `holds` says whether they are still let in.
    """

    name: str | None
    within: Selector | None = None
    holds: Callable[[], bool] = field(default=lambda: True, compare=False)
    scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class Handler:
    """An endpoint with what answers it; the docstring of `answer` is its description."""

    endpoint: Endpoint[Any]
    answer: Callable[[Request, Caller], Awaitable[Response]]


class ScopedRoute(Route):
    """A route that is answered only to whom its endpoint's scope allows, and is measured."""

    def __init__(
        self,
        served: Handler,
        callers: Callers,
        meters: Meters,
        durability: Callable[[], str],
        allowed: str,
    ) -> None:
        """`allowed` are the methods of all routes with this path."""
        endpoint = served.endpoint

        async def guarded(request: Request) -> Response:
            # First of all: nobody learns more of a route that is not theirs.
            caller = _admit(request, endpoint, callers)
            _check_query(request, endpoint.queries)
            return await served.answer(request, caller)

        super().__init__(endpoint.path, guarded, methods=[endpoint.method])
        self.declared = endpoint
        self._meters = meters
        self._durability = durability
        self._allowed = {"Allow": f"{allowed}, OPTIONS"}

    async def handle(self, scope: Connection, receive: Receive, send: Send) -> None:
        # It is asked for each route of the path only where none has the method.
        if scope["method"] == "OPTIONS":
            answer = Response(status_code=HTTPStatus.NO_CONTENT.value, headers=self._allowed)
            await answer(scope, receive, send)
            return
        if scope["method"] not in (self.methods or ()):
            raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED.value, headers=self._allowed)
        began_at = now_ns()

        async def measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._meters.answered(scope["method"], self.path, message["status"], began_at)
                if scope["method"] not in ("GET", "HEAD"):
                    told = (DURABILITY_HEADER, self._durability().encode())
                    message = {**message, "headers": [*message["headers"], told]}
            await send(message)

        await super().handle(scope, receive, measured)


def check_scopes(routes: Iterable[BaseRoute]) -> None:
    """Assert that every route declares its scope: who adds one otherwise must notice."""
    for route in routes:
        assert isinstance(route, ScopedRoute), f"{route} declares no scope"


def dry_run(request: Request) -> bool:
    """Whether a request asks only what would come of it."""
    return flag(request, "dry_run")


def claim_of(request: Request) -> Claim:
    """Whether a request takes what belongs to other owners."""
    return Claim.TAKE if flag(request, "take") else Claim.LEAVE


def flag(request: Request, name: str) -> bool:
    """Whether the query has NAME=1."""
    value = request.query_params.get(name, "0")
    if value not in ("0", "1"):
        raise HapteraError(f"{name}={value!r}", where="the query", do="write 1 or 0")
    return value == "1"


def read_query(request: Request, shape: type[Asked]) -> Asked:
    """The query of a request, whose names and numbers were checked when it was admitted.

    Raises:
        HapteraError: a text in it is longer than it may be, or of another form.
    """
    try:
        return msgspec.convert(dict(request.query_params), shape, strict=False)
    except msgspec.ValidationError as error:
        do = "send texts as docs/reference/openapi.json describes them"
        raise HapteraError(in_words(str(error)), where="the query", do=do) from None


def author(request: Request, caller: Caller) -> Author:
    """Who asks for a change, and why, where the query says so."""
    why = request.query_params.get("why")
    if why is not None and len(why) > WHY_CHARS_MAX:
        raise LimitError(
            f"the reason has {len(why)} characters",
            where="why in the query",
            do=f"say it in {WHY_CHARS_MAX}",
        )
    if why is not None and not is_line(why):
        raise HapteraError("the reason has several lines", where="why in the query", do=REMOVE)
    assert caller.scope is not None, "who has no token changes nothing"
    return Author(f"user:{caller.name}", why or None, caller.scope, caller.within is not None)


def check_by_name(selectors: Iterable[Selector]) -> None:
    """Refuse what goes by state: that of a node could be found out by asking of what is on it."""
    for one in selectors:
        if not one.by_name:
            raise HapteraError(
                f"a limited token can select by names only, and {one} selects by state",
                do="select by names, then read the state",
                code=Code.OUTSIDE_LIMIT,
            )


def narrowed(selector: Selector, caller: Caller) -> Selector:
    """What of a selection a caller may see."""
    if caller.within is None:
        return selector
    check_by_name([selector])
    return parse_selector(f"({selector}) and ({caller.within})")


def check_covered(selector: Selector, caller: Caller) -> None:
    """Refuse a selector that may mean more than a caller may change, be it there or not."""
    within = caller.within
    if within is not None and not covers(within, selector):
        raise HapteraError(
            f"the token is limited to {within}, and {selector} may select more",
            do=f"name only what it includes, or add: and ({within})",
            code=Code.OUTSIDE_LIMIT,
        )


def check_limit(entity: EntityId, within: Selector | None) -> None:
    """Refuse an entity that a token is not limited to."""
    if within is not None and not within.could_mean(entity):
        raise HapteraError(
            f"the token is limited to {within}, which does not include {entity}",
            do="use a token without this limit",
            code=Code.OUTSIDE_LIMIT,
        )


def _check_query(request: Request, queries: tuple[QueryName, ...]) -> None:
    """Refuse what the query may not have: a name misspelt must not be taken for nothing."""
    known = {one.name: one for one in queries}
    for name, value in request.query_params.multi_items():
        if (wrong := steering(value)) is not None:
            raise HapteraError(f"{name} has the character {wrong}", where="the query", do=REMOVE)
        if name not in known:
            allowed = f"it may have {', '.join(sorted(known))}" if known else "send none"
            what = f"the query has {name!r}, which is not a parameter of this route"
            raise UnknownNameError(what, do=allowed)
        if len(request.query_params.getlist(name)) > 1:
            raise DuplicateError(f"{name} is given twice", do="give it once")
        if (form := known[name].refusal(value)) is not None:
            raise HapteraError(f"{name}={value!r}", where="the query", do=f"write {form}")
    if missing := [
        one.name for one in queries if one.required and one.name not in request.query_params
    ]:
        raise HapteraError(
            f"the query lacks {missing[0]}", do=f"send {missing[0]}=…", code=Code.MISSING
        )


def _admit(request: Request, endpoint: Endpoint[Any], callers: Callers) -> Caller:
    if endpoint.scope is None:
        return Caller(None)
    known = callers.of(request)
    is_dry = endpoint.dry_scope is not None and dry_run(request)
    scope = endpoint.dry_scope if is_dry and endpoint.dry_scope else endpoint.scope
    if not known.scope.includes(scope):
        raise HapteraError(
            f"this needs a token of scope {scope}, {known.name}'s allows {known.scope}",
            do=f"use a token that allows {scope}",
            code=Code.FORBIDDEN,
        )
    within = None if known.within is None else parse_selector(known.within)
    if within is not None and not endpoint.narrows:
        _check_within(request, within)
    return Caller(known.name, within, lambda: callers.still(request, known), known.scope)


def _check_within(request: Request, within: Selector) -> None:
    """Refuse what is not about an entity that a token is limited to."""
    named = request.path_params.get("entity")
    if named is None:
        raise HapteraError(
            f"the token is limited to {within}, and this request concerns the whole cluster",
            do="use a token without this limit",
            code=Code.OUTSIDE_LIMIT,
        )
    check_limit(parse_entity(named), within)
