"""How the API writes: changes made for what is there now, made again where that moved on."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from haptera.api.backend import Backend
from haptera.api.problems import ProblemError
from haptera.model.changes import Cause, Change
from haptera.model.effects import Reply

ATTEMPTS_MAX: Final = 3
WRITTEN_WITHIN_S: Final = 30.0


async def write(
    backend: Backend,
    make: Callable[[], Awaitable[tuple[Change, ...]]],
    if_revision: int | None = None,
) -> tuple[int, tuple[Change, ...]]:
    """Write what `make` makes of the present state; returns the revision that holds it.

    With `if_revision`, only if nothing that is desired changed since that revision.

    Raises:
        ProblemError: something did (412), it cannot be (409), or be written (507).
    """
    for _ in range(ATTEMPTS_MAX):
        seen = backend.revision() if if_revision is None else if_revision
        changes = await make()
        if not changes:
            return seen, ()
        reply = await _propose(backend, changes, seen)
        if reply.revision is not None:
            return reply.revision, changes
        if reply.cause is not Cause.STALE:
            invalid = reply.cause is Cause.INVALID
            raise ProblemError(
                HTTPStatus.CONFLICT if invalid else HTTPStatus.INSUFFICIENT_STORAGE,
                f"nothing was written: {reply.refusal}",
                do="see to what it says, then try again",
            )
        if if_revision is not None:
            break
    raise ProblemError(
        HTTPStatus.PRECONDITION_FAILED,
        "what is desired changed meanwhile; nothing was written",
        do="read it again, then decide anew",
    )


async def _propose(backend: Backend, changes: tuple[Change, ...], seen: int) -> Reply:
    try:
        async with asyncio.timeout(WRITTEN_WITHIN_S):
            return await backend.propose(changes, seen)
    except TimeoutError:
        raise ProblemError(
            HTTPStatus.INSUFFICIENT_STORAGE,
            f"not written within {WRITTEN_WITHIN_S:.0f} s; it may be later",
            do="look at the state before you try again",
        ) from None
