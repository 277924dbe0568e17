"""`haptera resume`: start jobs on a node again."""

import click

from haptera.cli.input import completing
from haptera.cli.main import the_client
from haptera.cli.output.job_words import print_holder
from haptera.cli.output.printing import output_option
from haptera.client import calls


@click.command()
@click.argument("node", shell_complete=completing.entities)
@output_option
@click.pass_context
def resume(ctx: click.Context, node: str, output: str) -> None:
    r"""Start jobs on NODE again: end a drain or hold. Running jobs are not affected.

    \b
    Examples:
      haptera resume rack1n3
      haptera resume rack1n3 -o json
    """
    print_holder(the_client(ctx).ask(calls.resume(node.removeprefix("node:"))), output)
