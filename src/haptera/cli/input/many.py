"""Many calls under way at a time: a busy parent answers all that came meanwhile in one turn."""

import asyncio
from collections.abc import Iterable
from typing import Final, TypeVar

from haptera.client import Access, ApiCall, AsyncClient

# Calls under way at a time.
AT_ONCE: Final = 16

Shape = TypeVar("Shape")


def ask_all(access: Access, asked: Iterable[ApiCall[Shape]]) -> list[Shape]:
    """The answers to all of these, in their order.

    Raises:
        HapteraError: one is refused, or nobody answers; others may be done.
    """
    return asyncio.run(_all(access, asked))


async def _all(access: Access, asked: Iterable[ApiCall[Shape]]) -> list[Shape]:
    free = asyncio.Semaphore(AT_ONCE)
    async with AsyncClient(access) as client:

        async def ask(call: ApiCall[Shape]) -> Shape:
            async with free:
                return await client.ask(call)

        # Where one fails, the others end with the loop.
        return await asyncio.gather(*map(ask, asked))
