"""All errors as problem documents (RFC 9457): what, where, and what to do."""

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, cast

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from haptera.model.errors import Code, HapteraError, each
from haptera.rest.error_codes import CODES
from haptera.rest.problems import ProblemView, fault

RETRY_AFTER_S: Final = 5
_HEADERS: Final[Mapping[HTTPStatus, Mapping[str, str]]] = MappingProxyType(
    {
        HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": "Bearer"},
        HTTPStatus.TOO_MANY_REQUESTS: {"Retry-After": str(RETRY_AFTER_S)},
    }
)
# The errors of Starlette itself.
_ROUTING: Final = MappingProxyType(
    {HTTPStatus.NOT_FOUND: Code.NO_ROUTE, HTTPStatus.METHOD_NOT_ALLOWED: Code.METHOD}
)
# What to do instead of asking for what earlier versions had.
_GONE: Final = MappingProxyType(
    {
        "/v1/duties/": "desire work=draining, held or failed of the node, or nothing of its work:"
        " PATCH /v1/entities/node:NAME/desired",
    }
)


async def on_haptera_error(_request: Request, error: Exception) -> Response:
    """The answer to a request that raised a HapteraError."""
    told = cast(HapteraError, error)
    status = status_of(told)
    return problem(told, status, _HEADERS.get(status))


async def on_http_error(request: Request, error: Exception) -> Response:
    """The answer to a path or method that there is not."""
    raised = cast(HTTPException, error)
    status, path = HTTPStatus(raised.status_code), request.url.path
    gone = (do for prefix, do in _GONE.items() if f"{path}/".startswith(prefix))
    told = HapteraError(
        f"{request.method} {path}: {status.phrase.lower()}",
        do=next(gone, "see the routes in docs/reference/rest.md"),
        code=_ROUTING.get(status, Code.INVALID),
    )
    return problem(told, status, raised.headers)


async def on_bug(_request: Request, _error: Exception) -> Response:
    """The answer to a request that raised anything else; the server's log has the rest."""
    told = HapteraError(
        "internal error", do="report it with the lines of the server's log", code=Code.INTERNAL
    )
    return problem(told, HTTPStatus.INTERNAL_SERVER_ERROR, None)


def status_of(error: HapteraError) -> HTTPStatus:
    """The status of all that is wrong, where it is one; else 400."""
    statuses = {CODES[Code(one.code)].status for one in each(error)}
    shared = statuses.pop() if len(statuses) == 1 else None
    return HTTPStatus.BAD_REQUEST if shared is None else shared


def problem(error: HapteraError, status: HTTPStatus, headers: Mapping[str, str] | None) -> Response:
    """An answer that reports an error."""
    return Response(
        msgspec.json.encode(problem_view(error, status)),
        status_code=status.value,
        media_type="application/problem+json",
        headers=headers,
    )


def problem_view(error: HapteraError, status: HTTPStatus) -> ProblemView:
    return ProblemView(
        title=status.phrase,
        status=status.value,
        code=error.code,
        detail=str(error),
        what=error.what,
        where=error.where,
        do=error.do,
        errors=tuple(map(fault, each(error))),
    )
