"""What each code of an error means to a program, and the HTTP status that it comes with."""

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

import msgspec

from haptera.model.errors import Code

_BAD: Final = HTTPStatus.BAD_REQUEST


class ErrorCode(msgspec.Struct, frozen=True):
    """One code; the API answers with `status`, where it answers so at all."""

    status: HTTPStatus | None
    means: str


CODES: Final[Mapping[Code, ErrorCode]] = MappingProxyType(
    {
        Code.INVALID: ErrorCode(_BAD, "A value is not one of the allowed values."),
        Code.SYNTAX: ErrorCode(_BAD, "A text cannot be parsed: YAML, JSON, a selector, a time."),
        Code.UNKNOWN_NAME: ErrorCode(
            _BAD, "There is no kind, variable, module, group, node or parameter of this name."
        ),
        Code.DUPLICATE: ErrorCode(_BAD, "The same thing is given twice."),
        Code.MISSING: ErrorCode(_BAD, "Something required is not given."),
        Code.LIMIT: ErrorCode(_BAD, "A named limit is exceeded: a size, a count, a depth."),
        Code.SELECTS_NOTHING: ErrorCode(_BAD, "A selector matches no declared entity."),
        Code.INVALID_MODULE: ErrorCode(
            _BAD, "What a module, controller or package declares cannot be used."
        ),
        Code.OPEN_SECRET: ErrorCode(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "A setting that its module calls a secret is given in clear text.",
        ),
        Code.UNAUTHENTICATED: ErrorCode(
            HTTPStatus.UNAUTHORIZED, "No token, or one that is no longer valid."
        ),
        Code.FORBIDDEN: ErrorCode(
            HTTPStatus.FORBIDDEN, "The caller is known, but the scope of the token is too low."
        ),
        Code.OUTSIDE_LIMIT: ErrorCode(
            HTTPStatus.FORBIDDEN, "The token is limited to other entities than these."
        ),
        Code.NO_ROUTE: ErrorCode(HTTPStatus.NOT_FOUND, "The API has no such path."),
        Code.METHOD: ErrorCode(
            HTTPStatus.METHOD_NOT_ALLOWED, "The path has no such method; `Allow` lists those."
        ),
        Code.MISDIRECTED: ErrorCode(
            HTTPStatus.MISDIRECTED_REQUEST, "The header `Host` names another server."
        ),
        Code.BODY_TOO_LARGE: ErrorCode(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body of the request is too large."
        ),
        Code.BODY_TOO_SLOW: ErrorCode(
            HTTPStatus.REQUEST_TIMEOUT, "The body of the request arrived too slowly."
        ),
        Code.TOO_MANY: ErrorCode(
            HTTPStatus.TOO_MANY_REQUESTS, "Too much is open or queued; try again later."
        ),
        Code.NOT_FOUND: ErrorCode(
            HTTPStatus.NOT_FOUND, "There is no such entity, token, session, freeze or revision."
        ),
        Code.CONFLICT: ErrorCode(
            HTTPStatus.CONFLICT,
            "The request is valid, but the state of the cluster forbids it.",
        ),
        Code.OWNED: ErrorCode(
            HTTPStatus.CONFLICT, "The value belongs to another owner; `take=1` takes it."
        ),
        Code.WRONG_CLUSTER: ErrorCode(
            HTTPStatus.CONFLICT, "The site, directory or database is of another cluster."
        ),
        Code.CHANGED: ErrorCode(
            HTTPStatus.PRECONDITION_FAILED,
            "The entity, or its desired state, changed since it was read; read it again.",
        ),
        Code.PLAN_CHANGED: ErrorCode(
            HTTPStatus.PRECONDITION_FAILED,
            "The plan with this digest is out of date; plan again.",
        ),
        Code.PLAN_REQUIRED: ErrorCode(
            HTTPStatus.PRECONDITION_REQUIRED,
            "The write may disrupt many nodes: give the digest of its plan.",
        ),
        Code.KEY_REUSED: ErrorCode(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "The idempotency key was sent with another request before.",
        ),
        Code.KEY_UNSETTLED: ErrorCode(
            HTTPStatus.CONFLICT,
            "A request with this idempotency key was started; its answer is not known.",
        ),
        Code.EVENTS_GONE: ErrorCode(
            HTTPStatus.GONE, "What changed since that event is no longer known; start again."
        ),
        Code.HISTORY_GONE: ErrorCode(
            HTTPStatus.GONE, "The desired state, or the changes, of that time are no longer stored."
        ),
        Code.BUSY: ErrorCode(
            HTTPStatus.SERVICE_UNAVAILABLE, "Other writes came first each time; try again later."
        ),
        Code.STORAGE_UNREADABLE: ErrorCode(
            HTTPStatus.SERVICE_UNAVAILABLE, "A file of the parent cannot be read."
        ),
        Code.STORAGE_FAILED: ErrorCode(
            HTTPStatus.INSUFFICIENT_STORAGE,
            "The write could not be made durable; look before you try again.",
        ),
        Code.INTERNAL: ErrorCode(
            HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error; the parent's log says more."
        ),
        Code.UNREACHABLE: ErrorCode(None, "The parent does not answer (exit code 3)."),
        Code.NO_CLIENT_FILE: ErrorCode(None, "There is no client file (exit code 3)."),
        Code.VERSION_MISMATCH: ErrorCode(
            None, "The other side sends data that this version cannot read."
        ),
        Code.FILE_UNREADABLE: ErrorCode(None, "A file or folder cannot be read."),
        Code.FILE_UNWRITABLE: ErrorCode(None, "A file or folder cannot be written."),
        Code.NOT_INSTALLED: ErrorCode(
            None, "A program, package or privilege is missing on this machine."
        ),
        Code.CANNOT_LISTEN: ErrorCode(
            None, "The parent cannot listen on an address, port or socket."
        ),
        Code.IN_USE: ErrorCode(None, "Another process uses this directory."),
        Code.NOT_CONFIRMED: ErrorCode(None, "Nobody confirmed; nothing was written."),
        Code.NOT_CONVERGED: ErrorCode(
            None, "The awaited condition was not reached in time (exit code 4)."
        ),
    }
)
