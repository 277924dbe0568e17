"""`haptera override`: disturb a node without its permit, where that can never come."""

import click

from haptera.cli.input.naming import node_argument
from haptera.cli.main import the_client
from haptera.cli.output.printing import Format, output_option, print_data, say
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.model.walltime import duration
from haptera.rest.schemas import Overridden


@click.command()
@answers(Overridden)
@unwatched("it runs once")
@node_argument
@click.option("-m", "--why", required=True, help="Why no work is lost, for the audit.")
@output_option
@click.pass_context
def override(ctx: click.Context, node: str, why: str, output: str) -> None:
    r"""Act on NODE without a permit for ten minutes, if its gate cannot grant one.

    Work that runs there may be lost. This needs a token of scope admin, and is recorded in the
    audit. A node known to be busy is spared all the same; budgets and the brake still hold.

    \b
    Examples:
      haptera override rack1n3 -m "its agent hangs, and its jobs were moved"
      haptera override rack1n3 -m "the scheduler is gone for good" -o json
    """
    told = the_client(ctx).ask(calls.override(node, why=why))
    if Format(output).for_people:
        say(f"no permit of {told.node} is needed for {duration(told.for_s * 1000)}")
    else:
        print_data(told, output)
