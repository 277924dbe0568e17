"""`haptera hold`: have a node begin nothing new, for as long as somebody says so."""

import click

from haptera.cli.input import completing
from haptera.cli.main import the_client
from haptera.cli.output.job_words import holder_sentence
from haptera.cli.output.printing import Format, output_option, print_data
from haptera.cli.output.tables import print_sentence
from haptera.client import calls
from haptera.queue.duty import DutyMode
from haptera.rest.jobs import DutyBody


@click.command()
@click.argument("node", shell_complete=completing.entities)
@click.option("-m", "--why", required=True, metavar="TEXT", help="Why, for whoever finds it so.")
@click.option("--failed", is_flag=True, help="It has failed: what runs there is stopped now.")
@output_option
@click.pass_context
def hold(ctx: click.Context, node: str, why: str, failed: bool, output: str) -> None:
    r"""Have NODE take no new jobs, and let those it has run; no pool shuts it down.

    \b
    Examples:
      haptera hold rack1n3 -m "somebody looks into it"
      haptera hold rack1n3 --failed -m "its memory is faulty"
    """
    mode = DutyMode.FAILED if failed else DutyMode.HOLD
    view = the_client(ctx).ask(calls.relieve(node.removeprefix("node:"), DutyBody(mode, why)))
    if Format(output).for_people:
        print_sentence(holder_sentence(view), output)
    else:
        print_data(view, output)
