"""An agent whose parent is lost moves to the next on its list, and back when it can."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from haptera.core.engine import Engine
from haptera.core.sync.peers import Tier
from haptera.runtime.enrolment.enrol import Enrolment

# How often, in H, it is tried whether an earlier parent is there again.
RETURN_EVERY: Final = 5
_S: Final = 1_000_000_000

_log = logging.getLogger(__name__)


class Mover:
    """Goes by the list of parents of the node's enrolment.

    `move` speaks with another from then on; `reaches` tells whether one answers.
    """

    def __init__(
        self,
        enrolment: Enrolment,
        engine: Engine,
        move: Callable[[str], None],
        reaches: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._parents, present = enrolment.parents, enrolment.session.address[0]
        parents = self._parents
        self._at = parents.index(present) if present in parents else 0
        self._engine = engine
        self._move = move
        self._reaches = reaches

    async def run(self) -> None:
        """Move whenever it is due, until cancelled; who has one parent stays."""
        if len(self._parents) < 2:
            return
        hellos = 0
        while True:
            await asyncio.sleep(self._engine.side.hello_ns / _S)
            hellos += 1
            peer = self._engine.neighbours.parent
            if peer is not None and peer.tier is Tier.LOST:
                self._go((self._at + 1) % len(self._parents), "the parent before is silent")
            elif hellos % RETURN_EVERY == 0:
                await self._return()

    async def _return(self) -> None:
        for at in range(self._at):
            if await self._reaches(self._parents[at]):
                self._go(at, "it is there again")
                return

    def _go(self, at: int, why: str) -> None:
        self._at = at
        _log.info("moves to the parent at %s: %s", self._parents[at], why)
        self._move(self._parents[at])
