"""`haptera override`: disturb a node without its permit, where that can never come."""

import click

from haptera.cli.input import completing
from haptera.cli.main import the_client
from haptera.cli.output.printing import Format, output_option, print_data
from haptera.client import calls
from haptera.model.walltime import duration


@click.command()
@click.argument("node", shell_complete=completing.entities)
@click.option("-m", "--why", required=True, help="Why nobody's work is lost, for the audit.")
@output_option
@click.pass_context
def override(ctx: click.Context, node: str, why: str, output: str) -> None:
    r"""Need no permit of NODE for ten minutes: its gate never grants one, or cannot be asked.

    What runs there may be lost. It takes an admin, and stands in the audit. What is known to be
    busy is spared all the same, and so is what a budget or the brake holds back.

    \b
    Examples:
      haptera override rack1n3 -m "its agent hangs, and its jobs were moved"
      haptera override rack1n3 -m "the scheduler is gone for good" -o json
    """
    told = the_client(ctx).ask(calls.override(node, why=why))
    if Format(output).for_people:
        click.echo(f"no permit of {told.node} is needed for {duration(told.for_s * 1000)}")
    else:
        print_data(told, output)
