"""An answer written anew whenever something of it changed, until Ctrl-C."""

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

import click

from haptera.cli.output.printing import is_terminal, print_error, say
from haptera.client import Access, ApiCall, Arrived, AsyncClient
from haptera.model.errors import HapteraError
from haptera.rest.schemas import Event

REDRAW_EVERY_S: Final = 0.5


def again_and_again(access: Access, call: ApiCall[Event], draw: Callable[[], object]) -> None:
    """Draw now, and after each change that `call` announces, twice a second at most.

    Raises:
        HapteraError: the parent refuses to send changes.
    """
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_both(access, call, draw))


async def _both(access: Access, call: ApiCall[Event], draw: Callable[[], object]) -> None:
    news = asyncio.Event()
    # Where one fails, the other ends with the loop.
    await asyncio.gather(follow(access, call, lambda _: news.set()), _draw(news, draw))


async def follow(
    access: Access,
    call: ApiCall[Event],
    arrived: Callable[[Arrived], object],
    broken: Callable[[HapteraError], object] = print_error,
) -> None:
    """Hand over what `call` tells as it comes; why it breaks off is told once, and tried again."""
    told: str | None = None
    async with aclosing(AsyncClient(access).follow(call)) as stream:
        async for one in stream:
            if isinstance(one, Arrived):
                told = None
                arrived(one)
            elif told != str(one.error):
                told = str(one.error)
                broken(one.error)


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
