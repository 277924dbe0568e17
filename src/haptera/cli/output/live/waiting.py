"""Waiting until entities stand as somebody waits for: asked after each change of them, in time."""

import asyncio
from typing import Final

from haptera.cli.output.live.watching import follow
from haptera.client import Access, AsyncClient, calls
from haptera.model.answers.views import AlikeView

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
        following = asyncio.create_task(follow(access, calls.events(selector), news))
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
