"""Waiting until entities stand as somebody waits for: asked after each change of them, in time."""

import asyncio
from contextlib import aclosing
from typing import Final

from haptera.cli.output.printing import print_error
from haptera.client import Access, AsyncClient, Broken, calls
from haptera.model.views import AlikeView

# Asked so often at the most, and at the least: ages grow without news.
ASK_EVERY_S: Final = 0.2
ASK_AGAIN_S: Final = 5.0


def wait_until_none(access: Access, selector: str, others: str, within_s: float) -> list[AlikeView]:
    """Wait until nothing is meant by `others`, which is some of what `selector` means.

    What is left of it when the time is over; nothing, where it is over before.

    Raises:
        HapteraError: the parent refuses to tell.
    """
    return asyncio.run(_wait(access, selector, others, within_s))


async def _wait(access: Access, selector: str, others: str, within_s: float) -> list[AlikeView]:
    news = asyncio.Event()
    async with AsyncClient(access) as client:
        following = asyncio.create_task(_follow(access, selector, news))
        left = (await client.ask(calls.status(others))).alike
        try:
            async with asyncio.timeout(within_s):
                while left:
                    await _either(news, following)
                    left = (await client.ask(calls.status(others))).alike
        except TimeoutError:
            return left
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    return left


async def _either(news: asyncio.Event, following: "asyncio.Task[None]") -> None:
    """Until there is news, or for so long as none can be missed; not at once again."""
    await asyncio.sleep(ASK_EVERY_S)
    waiting = asyncio.create_task(news.wait())
    try:
        await asyncio.wait(
            {waiting, following}, timeout=ASK_AGAIN_S, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        waiting.cancel()
    if following.done():
        following.result()  # refused
    news.clear()


async def _follow(access: Access, selector: str, news: asyncio.Event) -> None:
    told: str | None = None
    async with aclosing(AsyncClient(access).follow(calls.events(selector))) as stream:
        async for one in stream:
            if not isinstance(one, Broken):
                told = None
                news.set()
            elif told != str(one.error):  # tried again and again, told once
                told = str(one.error)
                print_error(one.error)
