"""The option `--watch` of what shows how something is: shown again whenever that changes."""

import contextlib
import select
from collections.abc import Callable
from typing import Final, TypeVar

import click

from haptera.cli.output.printing import Format
from haptera.client import ApiCall, Client
from haptera.rest.schemas import Event

Answer = TypeVar("Answer")

watch_option = click.option(
    "-w", "--watch", is_flag=True, help="Show it again after each change, until Ctrl-C."
)


# What no event announces is asked for so often.
ASK_EVERY_S: Final = 1.0


def keep_asking(client: Client, call: ApiCall[Answer], show: Callable[[Answer], object]) -> None:
    """Show what is answered now, and again whenever it is another answer, until Ctrl-C."""
    keep_polling(lambda: client.ask(call), show)


def keep_polling(ask: Callable[[], Answer], show: Callable[[Answer], object]) -> None:
    """The same, of an answer that takes several calls."""
    with contextlib.suppress(KeyboardInterrupt):
        show(last := ask())
        while True:
            select.select((), (), (), ASK_EVERY_S)
            if (answer := ask()) != last:
                show(last := answer)


def keep_showing(
    client: Client, events: ApiCall[Event], show: Callable[[], object], output: str
) -> None:
    """Show now, and again after each change that these events announce, until Ctrl-C.

    Raises:
        UsageError: programs get a stream of changes from `haptera watch`.
        HapteraError: the parent refuses to send changes.
    """
    only_tables(output)
    from haptera.cli.output.live.watching import again_and_again  # only here: it brings asyncio

    again_and_again(client.access, events, show)


def only_tables(output: str) -> None:
    """See that what is watched is for people.

    Raises:
        UsageError: it is for a program.
    """
    if not Format(output).for_people:
        raise click.UsageError("--watch shows a table: leave out -o, or use haptera watch -o json")
