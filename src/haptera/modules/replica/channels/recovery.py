"""The handover of a group's state, from a sibling to a new incarnation of a replica.

The state goes through the carrier, in pieces: it is there until a newer one is, so what broke off
goes on, and a group whose replicas all ended still finds the last state that one of them supplied.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Sequence
from typing import Final

from haptera.app.channel_events import STATE_BYTES_MAX
from haptera.kinds.group import Recover
from haptera.modules.replica.channels.carrier import Carrier, StreamBounds, SuppliedState
from haptera.modules.replica.channels.outbox import NumberedOutput
from haptera.modules.replica.channels.program_frames import SuppliedFrame

# A supplier that has not finished within this time is asked again.
SUPPLIED_WITHIN_S: Final = 60.0
LOOK_EVERY_S: Final = 0.1
# After so many looks it is asked whether the supplier is there still.
LOOKS: Final = 20
ASK_AGAIN_S: Final = 1.0


class NoStateError(Exception):
    """Nobody supplies a state, and the group's policy is to fail."""


async def recovered(
    carrier: Carrier, group: str, rank: int, policy: Recover
) -> SuppliedState | None:
    """The state to begin with; None: with the oldest message that is kept.

    Raises:
        NoStateError: there is none, and the policy is to fail.
    """
    while True:
        kept = await carrier.state(group)
        suppliers = await carrier.suppliers(group)
        suppliers.pop(rank, None)
        if suppliers:
            leads = [one for one, does in suppliers.items() if does]
            kept = await _newer(carrier, group, min(leads or suppliers), kept)
        bounds = await carrier.bounds(group)
        if kept is not None and _goes_on(kept, bounds):
            return kept
        if suppliers:
            continue  # the stream has passed it meanwhile, or the supplier is gone
        if bounds.first == 1 or policy is Recover.EMPTY:
            return None
        if policy is Recover.FAIL:
            why = f"messages 1 to {bounds.first - 1} of {group} are not kept, and nobody"
            raise NoStateError(f"{why} supplies a state; set recover=empty to begin without")
        await asyncio.sleep(ASK_AGAIN_S)


def _goes_on(state: SuppliedState, bounds: StreamBounds) -> bool:
    """True where all that came after this state is kept."""
    return bounds.first - 1 <= state.number <= bounds.last


async def _newer(
    carrier: Carrier, group: str, rank: int, kept: SuppliedState | None
) -> SuppliedState | None:
    """The state that a rank supplies now; the one that was kept where it ends before."""
    await carrier.ask(group, rank)
    try:
        async with asyncio.timeout(SUPPLIED_WITHIN_S):
            while rank in await carrier.suppliers(group):
                for _ in range(LOOKS):
                    if (found := await carrier.state(group)) != kept:
                        return found
                    await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        pass
    return kept


class StateInPieces:
    """A state that a program supplies, on its way to the carrier."""

    def __init__(self, carrier: Carrier, group: str) -> None:
        self._carrier = carrier
        self._group = group
        self._blob = secrets.token_hex(8)
        self._digest, self._size = hashlib.sha256(), 0
        self._first, self._last = 1, 0

    async def add(self, piece: bytes) -> None:
        """Store what comes next of it.

        Raises:
            ConnectionError: the carrier would not keep all of it.
        """
        self._digest.update(piece)
        self._size += len(piece)
        if self._size > STATE_BYTES_MAX:
            raise ConnectionError(f"a state has {STATE_BYTES_MAX} bytes at most")
        await self._store(piece)

    async def end(self, said: SuppliedFrame, outputs: Sequence[NumberedOutput]) -> None:
        """Store that it is whole, and with it what its supplier has said that is not stored.

        Who begins after the messages that led to these outputs will not say them by itself.

        Raises:
            ConnectionError: it is not what the program says of it; nobody could begin with it.
        """
        if (self._size, self._digest.hexdigest()) != (said.bytes, said.digest):
            raise ConnectionError("the state that was supplied is another than its digest says")
        for one in outputs:
            await self._store(one.data)
        state = SuppliedState(
            self._blob,
            said.number,
            said.heard,
            said.digest,
            said.bytes,
            [(one.position.number, one.position.nth) for one in outputs],
            self._first,
            self._last,
        )
        await self._carrier.supplied(self._group, state)

    async def _store(self, piece: bytes) -> None:
        at = await self._carrier.supply(self._group, self._blob, piece)
        if self._last == 0:
            self._first = at
        self._last = at
