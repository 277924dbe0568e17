"""An answer written anew whenever something of it changed, until Ctrl-C."""

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

import click

from haptera.cli.output.printing import is_terminal, print_error, say
from haptera.client import Access, ApiCall, AsyncClient, Broken
from haptera.model.errors import HapteraError
from haptera.rest.schemas import Event

REDRAW_EVERY_S: Final = 0.5


def again_and_again(access: Access, call: ApiCall[Event], draw: Callable[[], object]) -> None:
    """Draw now, and after each change that `call` tells of, twice a second at most.

    Raises:
        HapteraError: the parent refuses to tell of changes.
    """
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_both(access, call, draw))


async def _both(access: Access, call: ApiCall[Event], draw: Callable[[], object]) -> None:
    news = asyncio.Event()
    # Where one fails, the other ends with the loop.
    await asyncio.gather(follow(access, call, news), _draw(news, draw))


async def follow(access: Access, call: ApiCall[Event], news: asyncio.Event) -> None:
    """Set `news` after each change that `call` tells of; tell why it breaks off, and try again."""
    told: str | None = None
    async with aclosing(AsyncClient(access).follow(call)) as stream:
        async for one in stream:
            if not isinstance(one, Broken):
                told = None
                news.set()
            elif told != str(one.error):  # tried again and again, told once
                told = str(one.error)
                print_error(one.error)


async def _draw(news: asyncio.Event, draw: Callable[[], object]) -> None:
    while True:
        await news.wait()
        news.clear()
        if is_terminal():
            click.clear()
        try:
            await asyncio.to_thread(draw)
        except HapteraError as error:
            print_error(error)  # nothing is there now, or nobody; it may come
        if not is_terminal():
            say()
        await asyncio.sleep(REDRAW_EVERY_S)
