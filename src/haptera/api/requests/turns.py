"""Whose turn it is, for what takes long: each token has one piece of work under way at a time."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from haptera.model.errors import Code, HapteraError

# How many requests of one token wait for their turn, or have it.
REQUESTS_MAX: Final = 4


class Turns:
    """Gives each name its turns one after the other."""

    def __init__(self) -> None:
        self._asked = Counter[str]()
        self._locks = defaultdict[str, asyncio.Lock](asyncio.Lock)

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """The turn of this name, once it comes.

        Raises:
            HapteraError: too many of the same name wait already.
        """
        if self._asked[name] == REQUESTS_MAX:
            raise HapteraError(
                f"{REQUESTS_MAX} sites of {name} are being read or queued",
                do="wait for your earlier requests before you send more",
                code=Code.TOO_MANY,
            )
        self._asked[name] += 1
        try:
            async with self._locks[name]:
                yield
        finally:
            self._asked[name] -= 1
            if not self._asked[name]:
                del self._asked[name], self._locks[name]
