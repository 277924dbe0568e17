"""The option `--watch` of what shows how something is: shown again whenever that changes."""

from collections.abc import Callable

import click

from haptera.cli.output.printing import Format
from haptera.client import ApiCall, Client
from haptera.rest.schemas import Event

watch_option = click.option(
    "-w", "--watch", is_flag=True, help="Show it again after each change, until Ctrl-C."
)


def keep_showing(
    client: Client, events: ApiCall[Event], show: Callable[[], object], output: str
) -> None:
    """Show now, and again after each change that these events tell of, until Ctrl-C.

    Raises:
        UsageError: programs get a stream of changes from `haptera watch`.
        HapteraError: the parent refuses to tell of changes.
    """
    if not Format(output).for_people:
        raise click.UsageError("--watch shows a table: leave out -o, or use haptera watch -o json")
    from haptera.cli.output.watching import again_and_again  # only here: it brings asyncio

    again_and_again(client.access, events, show)
