"""Long work in pieces, done over many turns of the loop: others have theirs in between."""

import asyncio
from typing import TypeVar

from haptera.core.state.allowance import TURN_WORK_MAX
from haptera.planner.domain.pieces import Pieces

Whole = TypeVar("Whole")


async def over_turns(pieces: Pieces[Whole]) -> Whole:
    """The whole; in each turn as much of it as the core would do in one."""
    spent = 0
    while True:
        try:
            spent += next(pieces)
        except StopIteration as done:
            whole: Whole = done.value
            return whole
        if spent >= TURN_WORK_MAX:
            spent = 0
            await asyncio.sleep(0)
