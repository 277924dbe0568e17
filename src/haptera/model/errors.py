"""Bad input at the edge, in words by which a person can mend it, with a code for programs."""

from collections.abc import Sequence
from enum import StrEnum


class Code(StrEnum):
    """What sort of thing is wrong. Codes are stable; sentences are not.

    `haptera.rest.error_codes` says what each means, and its HTTP status.
    """

    # What was sent or written.
    INVALID = "invalid-value"
    SYNTAX = "syntax-error"
    UNKNOWN_NAME = "unknown-name"
    DUPLICATE = "duplicate"
    MISSING = "missing-value"
    LIMIT = "limit-exceeded"
    SELECTS_NOTHING = "selects-nothing"
    INVALID_MODULE = "invalid-module"
    OPEN_SECRET = "open-secret"
    # Whose request, and where it goes.
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    OUTSIDE_LIMIT = "outside-limit"
    NO_ROUTE = "no-route"
    METHOD = "method-not-allowed"
    MISDIRECTED = "misdirected"
    BODY_TOO_LARGE = "body-too-large"
    BODY_TOO_SLOW = "body-too-slow"
    TOO_MANY = "too-many-requests"
    # What is there already, or not, or otherwise.
    NOT_FOUND = "not-found"
    CONFLICT = "conflict"
    OWNED = "owned-by-another"
    WRONG_CLUSTER = "wrong-cluster"
    CHANGED = "changed-meanwhile"
    PLAN_CHANGED = "plan-changed"
    PLAN_REQUIRED = "plan-required"
    KEY_REUSED = "idempotency-key-reused"
    KEY_UNSETTLED = "idempotency-unsettled"
    EVENTS_GONE = "events-gone"
    HISTORY_GONE = "history-gone"
    BUSY = "busy"
    STORAGE_UNREADABLE = "storage-unreadable"
    STORAGE_FAILED = "storage-failed"
    INTERNAL = "internal-error"
    # This machine, and who is asked from it.
    UNREACHABLE = "unreachable"
    NO_CLIENT_FILE = "no-client-file"
    VERSION_MISMATCH = "version-mismatch"
    FILE_UNREADABLE = "file-unreadable"
    FILE_UNWRITABLE = "file-unwritable"
    NOT_INSTALLED = "not-installed"
    CANNOT_LISTEN = "cannot-listen"
    IN_USE = "in-use"
    NOT_CONFIRMED = "not-confirmed"
    NOT_CONVERGED = "not-converged"


class HapteraError(Exception):
    """Something given to us cannot be used: what is wrong, where, and what to do about it."""

    code: str = Code.INVALID

    def __init__(
        self, what: str, *, where: str | None = None, do: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(what, where, do)
        self.what = what
        self.where = where
        self.do = do
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        place = "" if self.where is None else f"{self.where}: "
        advice = "" if self.do is None else f" ({self.do})"
        return f"{place}{self.what}{advice}"


class ConflictError(HapteraError):
    """What is asked for is sound, but something that is there already stands against it."""

    code = Code.CONFLICT


class StorageError(HapteraError):
    """What is asked for is sound, but a file of ours that holds it cannot be read."""

    code = Code.STORAGE_UNREADABLE


class ParseError(HapteraError):
    """A text does not follow its syntax."""

    code = Code.SYNTAX


class UnknownNameError(HapteraError):
    """There is nothing of this name; `do` often names what is nearest."""

    code = Code.UNKNOWN_NAME


class DuplicateError(HapteraError):
    """The same thing is given twice."""

    code = Code.DUPLICATE


class LimitError(HapteraError):
    """A named limit is exceeded."""

    code = Code.LIMIT


class DeclarationError(HapteraError):
    """What a module, controller or package declares cannot be used."""

    code = Code.INVALID_MODULE


class UnreadableError(HapteraError):
    """A file or folder that was named cannot be read."""

    code = Code.FILE_UNREADABLE


class InputError(HapteraError):
    """Several things are wrong with one input; nothing of it was used. Reads as its first."""

    def __init__(self, errors: Sequence[HapteraError]) -> None:
        first = errors[0]
        super().__init__(first.what, where=first.where, do=first.do, code=first.code)
        self.errors = tuple(errors)


def each(error: HapteraError) -> tuple[HapteraError, ...]:
    """All that is wrong, one by one."""
    return error.errors if isinstance(error, InputError) else (error,)
