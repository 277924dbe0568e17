"""`haptera console`: what a machine has written to its serial console."""

import click

from haptera.cli.commands.inspect.logs import LINES, follow_option, show_log
from haptera.cli.input.naming import node_argument
from haptera.cli.main import the_client
from haptera.cli.output.printing import output_option
from haptera.cli.verb import answers
from haptera.rest.schemas import LogView


@click.command()
@answers(LogView)
@node_argument
@click.option("-n", "--lines", type=click.IntRange(1), default=LINES, show_default=True)
@follow_option
@output_option
@click.pass_context
def console(ctx: click.Context, node: str, lines: int, watch: bool, output: str) -> None:
    r"""Show the last lines of a machine's serial console.

    It is recorded where the power module of its node does that: `record_consoles: true` in the
    settings of the module ipmi, qemu or libvirt.

    \b
    Examples:
      haptera console rack1n1
      haptera console --follow rack1n1
    """
    show_log(the_client(ctx), f"node:{node}", lines, output, watch=watch)
