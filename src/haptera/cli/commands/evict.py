"""`haptera evict`: the session of a node ended."""

import click

from haptera.cli.input import completing
from haptera.cli.main import the_client
from haptera.cli.output.printing import Format, output_option, print_data
from haptera.client import calls


@click.command()
@click.argument("node", shell_complete=completing.entities)
@output_option
@click.pass_context
def evict(ctx: click.Context, node: str, output: str) -> None:
    r"""End the session of NODE, whose machine is not to be trusted any more.

    Its datagrams count no more, its certificate is answered nothing, tokens that were made for it
    are none. It is still declared, and has a session again once its parent has booted it anew.

    \b
    Examples:
      haptera evict rack1n3
      haptera evict rack1n3 -o json
    """
    told = the_client(ctx).ask(calls.evict(node))
    if Format(output).for_people:
        click.echo(f"{told.node} is put out; boot it anew to have it back")
    else:
        print_data(told, output)
