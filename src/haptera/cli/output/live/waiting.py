"""Waiting until entities stand as somebody waits for: asked after each change of them, in time."""

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from haptera.cli.output.live.cells import Board
from haptera.cli.output.live.watching import follow
from haptera.client import Access, ApiCall, Arrived, AsyncClient, calls
from haptera.model.answers.views import AlikeView, EntityView
from haptera.rest.schemas import Event

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
        events = calls.events(selector)
        following = asyncio.create_task(follow(access, events, lambda _: news.set()))
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


def watch_while(
    access: Access,
    events: ApiCall[Event],
    goes_on: Callable[[Collection[EntityView]], bool],
    within_s: float,
) -> None:
    """Follow all that these events tell of for as long as it goes on, or until the time is over.

    Raises:
        HapteraError: the parent refuses to tell.
    """
    asyncio.run(_watch_while(access, events, goes_on, within_s))


async def _watch_while(
    access: Access,
    events: ApiCall[Event],
    goes_on: Callable[[Collection[EntityView]], bool],
    within_s: float,
) -> None:
    board, news, is_whole = Board({}), asyncio.Event(), False

    def arrived(one: Arrived) -> None:
        nonlocal is_whole
        board.take(one.event.entities, [*one.event.gone, *one.event.left], fresh=one.fresh)
        is_whole = one.whole
        news.set()

    following = asyncio.create_task(follow(access, events, arrived))
    try:
        async with asyncio.timeout(within_s):
            while not is_whole or goes_on(board.views.values()):
                await _either(news, following)
    except TimeoutError:
        return
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


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
