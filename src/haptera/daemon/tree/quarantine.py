"""A node whose token two machines have claimed: nothing is done with it until somebody looks."""

from typing import Final

from haptera.kinds.rules import freeze
from haptera.model.changes import Author, Change, Declare, SetDesired
from haptera.model.entity import EntityId
from haptera.runtime.store.optimistic_write import Proposing, write

# Who writes the freezes of such nodes.
OWNER: Final = "enrolment"
REASON: Final = "two machines claimed its token"


async def quarantine(backend: Proposing, node: str) -> None:
    """Freeze a node, so that it is not booted again before somebody thaws it.

    Raises:
        WriteError: that could not be written.
    """
    # Of a node there is one, however often its token is claimed twice.
    entity = EntityId(freeze.kind.name, f"claims.{node}", None)

    async def make() -> tuple[Change, ...]:
        return (
            Declare(entity, {}, OWNER),
            SetDesired(entity, freeze.of.name, node, OWNER),
            SetDesired(entity, freeze.reason.name, REASON, OWNER),
        )

    await write(backend, make, Author(OWNER, REASON))
