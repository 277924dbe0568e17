"""`haptera unclaimed`: machines that asked for an address and are no node's."""

import click

from haptera.cli.main import the_client
from haptera.cli.output.printing import Format, names_option, print_names, say
from haptera.cli.output.tables import print_table
from haptera.cli.output.words import printable
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.model.walltime import utc_text_s
from haptera.rest.unclaimed import Unclaimed, UnclaimedView

_HEADERS = ("MAC", "FIRMWARE", "ASKED", "FIRST", "LAST", "VENDOR")


@click.command()
@answers(Unclaimed)
@unwatched("there are no events for such machines: run it again")
@names_option
@click.pass_context
def unclaimed(ctx: click.Context, output: str) -> None:
    r"""List machines that requested an address from the boot servers and belong to no node.

    A machine is listed for an hour after its last request. `haptera claim` makes it a node.

    \b
    Examples:
      haptera unclaimed
      haptera unclaimed -o name
    """
    told = the_client(ctx).ask(calls.unclaimed())
    if not Format(output).for_people:
        print_names([one.mac for one in told.machines], told, output)
    elif told.machines:
        print_table(_HEADERS, [_row(one) for one in told.machines], output)
    else:
        say("no machine is unclaimed")


def _row(one: UnclaimedView) -> tuple[str, ...]:
    first, last = (utc_text_s(int(at)) for at in (one.first_s, one.last_s))
    return (
        one.mac,
        printable(one.firmware or "-"),
        str(one.asked),
        first,
        last,
        printable(one.vendor or "-"),
    )
