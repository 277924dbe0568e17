"""`haptera claim`: a machine that asked for an address becomes a node."""

import click

from haptera.cli.input.naming import node_argument
from haptera.cli.input.terms import why_option
from haptera.cli.main import the_client
from haptera.cli.output.printing import Format, output_option, print_data, say
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.rest.unclaimed import ClaimMade

_SITE = "site"


@click.command()
@answers(ClaimMade)
@unwatched("it runs once; `haptera status --watch` shows the result")
@click.argument("mac")
@node_argument
@why_option
@output_option
@click.pass_context
def claim(ctx: click.Context, mac: str, node: str, why: str | None, output: str) -> None:
    r"""Assign the machine with the MAC address MAC to the declared node NODE.

    `haptera unclaimed` lists the machines that can be claimed. NODE must have no MAC address yet;
    it stays its owner's. This needs a token of scope admin, and is recorded in the audit.

    \b
    Examples:
      haptera claim 52:54:00:00:01:03 rack1n3
      haptera claim 52:54:00:00:01:03 rack1n3 -m "new machine in slot 3" -o json
    """
    told = the_client(ctx).ask(calls.claim(mac, node, why=why))
    if not Format(output).for_people:
        print_data(told, output)
        return
    say(f"{told.node} is the machine with {told.mac}")
    if told.owner == _SITE:
        say(f"add it to the site file, or the next apply removes it: mac: {told.mac!r}")
