"""Optimistic writes: changes made for the present state, and again if that moved on."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from haptera.model.changes import Author, Cause, Change
from haptera.model.effects import Reply
from haptera.model.errors import Code, HapteraError

# Each that fails means that another's write did not.
ATTEMPTS_MAX: Final = 64
WRITTEN_WITHIN_S: Final = 30.0
_CODES: Final = {
    Cause.INVALID: Code.CONFLICT,
    Cause.OPEN_SECRET: Code.OPEN_SECRET,
    Cause.FORBIDDEN: Code.FORBIDDEN,
    Cause.BUSY: Code.BUSY,
    Cause.STALE: Code.CHANGED,
    Cause.STORAGE: Code.STORAGE_FAILED,
}


class Proposing(Protocol):
    """Who takes proposals for changes of desired state."""

    def revision(self) -> int: ...

    async def propose(
        self, changes: tuple[Change, ...], if_revision: int | None, author: Author
    ) -> Reply: ...


class WriteError(HapteraError):
    """Sound changes were not written; nothing of them holds, unless the disk is only late."""

    def __init__(self, cause: Cause, what: str, *, do: str) -> None:
        super().__init__(what, do=do, code=_CODES[cause])
        self.cause = cause


def refused(why: str | None, cause: Cause = Cause.INVALID) -> WriteError:
    """What is answered to changes that are not written for this reason."""
    do = "fix the cause, then try again"
    if cause is Cause.FORBIDDEN:
        do = "use a token of that scope, or leave the field as it is"
    return WriteError(cause, f"nothing was written: {why}", do=do)


async def write(
    to: Proposing,
    make: Callable[[], Awaitable[tuple[Change, ...]]],
    author: Author,
    if_revision: int | None = None,
) -> tuple[int, tuple[Change, ...]]:
    """Write what `make` makes of the present state; returns the revision that holds it.

    With `if_revision`, only if nothing that is desired changed since that revision.

    Raises:
        WriteError: something did, it cannot be so, it could not be made durable, or others
            write all the time.
    """
    for _ in range(ATTEMPTS_MAX):
        seen = to.revision() if if_revision is None else if_revision
        changes = await make()
        if not changes:
            return seen, ()
        reply = await _propose(to, changes, seen, author)
        if reply.revision is not None:
            return reply.revision, changes
        if reply.cause is not Cause.STALE:
            raise refused(reply.refusal, reply.cause or Cause.STORAGE)
        if if_revision is not None:
            raise WriteError(
                Cause.STALE,
                "the desired state changed meanwhile; nothing was written",
                do="read it again, then decide again",
            )
    raise WriteError(
        Cause.BUSY, "too many concurrent writes; nothing was written", do="try again later"
    )


async def _propose(to: Proposing, changes: tuple[Change, ...], seen: int, author: Author) -> Reply:
    try:
        async with asyncio.timeout(WRITTEN_WITHIN_S):
            return await to.propose(changes, seen, author)
    except TimeoutError:
        raise WriteError(
            Cause.STORAGE,
            f"not written within {WRITTEN_WITHIN_S:.0f} s; it may still be written",
            do="check the state before you try again",
        ) from None
