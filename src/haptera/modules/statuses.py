"""HTTP statuses, by what they say of the effect of a command."""

from http import HTTPStatus
from typing import Final

from haptera.modules.effects import Effect

# RFC 9110, section 15, RFC 6585 and RFC 4918; DSP0266 says the same of those that it lists under
# *Status codes*. What is missing is an error of who asks (4xx), or of the service (5xx).
EFFECTS: Final[dict[int, Effect]] = {
    # A parameter that it does not have, mostly: GracefulShutdown, say.
    HTTPStatus.BAD_REQUEST: Effect.LACKING,
    HTTPStatus.UNAUTHORIZED: Effect.NEVER,
    HTTPStatus.FORBIDDEN: Effect.NEVER,
    HTTPStatus.NOT_FOUND: Effect.LACKING,
    HTTPStatus.METHOD_NOT_ALLOWED: Effect.LACKING,
    # It has not received the whole request.
    HTTPStatus.REQUEST_TIMEOUT: Effect.NOT_YET,
    # It is at something that this would conflict with.
    HTTPStatus.CONFLICT: Effect.NOT_YET,
    HTTPStatus.GONE: Effect.LACKING,
    HTTPStatus.LOCKED: Effect.NOT_YET,
    HTTPStatus.FAILED_DEPENDENCY: Effect.NOT_YET,
    HTTPStatus.TOO_EARLY: Effect.NOT_YET,
    HTTPStatus.TOO_MANY_REQUESTS: Effect.NOT_YET,
    HTTPStatus.NOT_IMPLEMENTED: Effect.LACKING,
    HTTPStatus.SERVICE_UNAVAILABLE: Effect.NOT_YET,
}


def effect_of(status: int) -> Effect:
    """The effect of a command that was answered so.

    >>> [str(effect_of(status)) for status in (418, 503, 500)]
    ['never', 'not yet', 'unknown']
    """
    return EFFECTS.get(status, Effect.NEVER if 400 <= status < 500 else Effect.UNKNOWN)
