"""Whatever goes wrong, told as a problem document (RFC 9457): what, where, and what to do."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, cast

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from haptera.model.changes import Cause
from haptera.model.errors import ConflictError, HapteraError, InputError, StorageError
from haptera.rest.schemas import ProblemView, SiteFault
from haptera.runtime.store.optimistic_write import WriteError

_UNWRITTEN: Final = {
    Cause.INVALID: HTTPStatus.CONFLICT,
    Cause.OPEN_SECRET: HTTPStatus.UNPROCESSABLE_ENTITY,
    Cause.BUSY: HTTPStatus.SERVICE_UNAVAILABLE,
    Cause.STALE: HTTPStatus.PRECONDITION_FAILED,
    Cause.STORAGE: HTTPStatus.INSUFFICIENT_STORAGE,
}


class ProblemError(HapteraError):
    """A request that is answered with this status."""

    def __init__(
        self,
        status: HTTPStatus,
        what: str,
        *,
        where: str | None = None,
        do: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(what, where=where, do=do)
        self.status = status
        self.headers = headers


def on_haptera_error(_request: Request, error: Exception) -> Response:
    """The answer to a request that raised a HapteraError."""
    told = cast(HapteraError, error)
    headers = told.headers if isinstance(told, ProblemError) else None
    return problem(told, status_of(told), headers)


def on_http_error(request: Request, error: Exception) -> Response:
    """The answer to a path or method that there is not."""
    raised = cast(HTTPException, error)
    status = HTTPStatus(raised.status_code)
    told = HapteraError(
        f"{request.method} {request.url.path}: {status.phrase.lower()}",
        do="see the routes in docs/reference/rest.md",
    )
    return problem(told, status, raised.headers)


def on_bug(_request: Request, _error: Exception) -> Response:
    """The answer to a request that raised anything else; the server's log has the rest."""
    told = HapteraError("haptera has a fault", do="report what the server's log says of it")
    return problem(told, HTTPStatus.INTERNAL_SERVER_ERROR, None)


def status_of(error: HapteraError) -> HTTPStatus:
    match error:
        case ProblemError():
            return error.status
        case WriteError():
            return _UNWRITTEN[error.cause]
        case ConflictError():
            return HTTPStatus.CONFLICT
        case StorageError():
            return HTTPStatus.SERVICE_UNAVAILABLE
        case InputError(errors=errors) if all(isinstance(one, ConflictError) for one in errors):
            return HTTPStatus.CONFLICT
        case _:
            return HTTPStatus.BAD_REQUEST


def problem(error: HapteraError, status: HTTPStatus, headers: Mapping[str, str] | None) -> Response:
    """An answer that tells of an error."""
    return Response(
        msgspec.json.encode(problem_view(error, status)),
        status_code=status.value,
        media_type="application/problem+json",
        headers=headers,
    )


def problem_view(error: HapteraError, status: HTTPStatus) -> ProblemView:
    errors = error.errors if isinstance(error, InputError) else (error,)
    return ProblemView(
        title=status.phrase,
        status=status.value,
        detail=str(error),
        what=error.what,
        where=error.where,
        do=error.do,
        errors=tuple(SiteFault(one.what, one.where, one.do) for one in errors),
    )
