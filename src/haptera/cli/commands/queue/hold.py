"""`haptera hold`: start no new jobs on a node until a person resumes it."""

import click

from haptera.cli.input import completing
from haptera.cli.main import the_client
from haptera.cli.output.job_words import print_holder
from haptera.cli.output.printing import output_option
from haptera.client import calls
from haptera.queue.duty import DutyMode
from haptera.rest.jobs import DutyBody


@click.command()
@click.argument("node", shell_complete=completing.entities)
@click.option("-m", "--why", required=True, metavar="TEXT", help="The reason, shown to users.")
@click.option("--failed", is_flag=True, help="The node has failed: stop its jobs now.")
@output_option
@click.pass_context
def hold(ctx: click.Context, node: str, why: str, failed: bool, output: str) -> None:
    r"""Start no new jobs on NODE; running jobs continue, and no pool removes the node.

    \b
    Examples:
      haptera hold rack1n3 -m "somebody looks into it"
      haptera hold rack1n3 --failed -m "its memory is faulty"
    """
    mode = DutyMode.FAILED if failed else DutyMode.HOLD
    print_holder(
        the_client(ctx).ask(calls.relieve(node.removeprefix("node:"), DutyBody(mode, why))), output
    )
