"""An agent whose parent is lost, or does not hear it, moves to the next one, and back."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from haptera.core.engine import Engine
from haptera.core.state.limits import S
from haptera.core.sync.peers import Tier
from haptera.runtime.enrolment.enrol import Enrolment

# How often, in H, it is tried whether an earlier parent is there again.
RETURN_EVERY: Final = 5
# For so many H in a row a parent may show nothing new that it heard. Each of the two sides probes
# whom it has not heard for longer than 1.2 H, so this is no more likely by chance than silence is.
UNHEARD_MAX: Final = 6

_log = logging.getLogger(__name__)


class Mover:
    """Goes by the list of parents of the node's enrolment.

    `move` speaks with another from then on; `reaches` tells whether one answers; `confirmed` is
    the last of our datagrams that the parent has shown to have heard.
    """

    def __init__(
        self,
        enrolment: Enrolment,
        engine: Engine,
        move: Callable[[str], None],
        reaches: Callable[[str], Awaitable[bool]],
        confirmed: Callable[[], int],
    ) -> None:
        self._parents, present = enrolment.parents, enrolment.session.address[0]
        parents = self._parents
        self._at = parents.index(present) if present in parents else 0
        self._engine = engine
        self._move = move
        self._reaches = reaches
        self._confirmed = confirmed

    async def run(self) -> None:
        """Move whenever it is due, until cancelled; who has one parent stays."""
        if len(self._parents) < 2:
            return
        hellos = unheard = 0
        heard = self._confirmed()
        while True:
            await asyncio.sleep(self._engine.side.hello_ns / S)
            hellos += 1
            before, heard = heard, self._confirmed()
            unheard = unheard + 1 if heard == before else 0
            peer = self._engine.neighbours.parent
            if peer is not None and peer.tier is Tier.LOST:
                self._next("the parent before is silent")
                unheard = 0
            elif unheard >= UNHEARD_MAX:
                self._next("the parent before does not hear us")
                unheard = 0
            elif hellos % RETURN_EVERY == 0:
                await self._return()

    async def _return(self) -> None:
        for at in range(self._at):
            if await self._reaches(self._parents[at]):
                self._go(at, "it is there again")
                return

    def _next(self, why: str) -> None:
        self._go((self._at + 1) % len(self._parents), why)

    def _go(self, at: int, why: str) -> None:
        self._at = at
        _log.info("moves to the parent at %s: %s", self._parents[at], why)
        self._move(self._parents[at])
