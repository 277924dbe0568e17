"""`haptera drain`: have a node take no new jobs, and say when none is there any more."""

import click

from haptera.cli.input import completing
from haptera.cli.main import the_client
from haptera.cli.output.job_words import holder_sentence
from haptera.cli.output.printing import Format, output_option, print_data
from haptera.cli.output.tables import print_sentence
from haptera.client import calls
from haptera.model.walltime import parse_duration_ms
from haptera.queue.duty import DutyMode
from haptera.rest.jobs import DutyBody


@click.command()
@click.argument("node", shell_complete=completing.entities)
@click.option("--within", metavar="DURATION", help="What still runs then is stopped: 30m, 2h.")
@click.option("-m", "--why", required=True, metavar="TEXT", help="Why, for whose jobs are there.")
@output_option
@click.pass_context
def drain(ctx: click.Context, node: str, within: str | None, why: str, output: str) -> None:
    r"""Have NODE take no new jobs; it is drained once those it has are done.

    With --within, those that still run then are stopped: TERM, and KILL 10 s later.
    They are queued again where their retry class says so. `haptera resume` ends a drain.

    \b
    Examples:
      haptera drain rack1n3 -m "new disk"
      haptera drain rack1n3 --within 2h -m "new disk"
    """
    within_s = None if within is None else parse_duration_ms(within) // 1_000
    body = DutyBody(DutyMode.DRAIN, why, within_s)
    view = the_client(ctx).ask(calls.relieve(node.removeprefix("node:"), body))
    if Format(output).for_people:
        print_sentence(holder_sentence(view), output)
    else:
        print_data(view, output)
