"""`haptera drain`: start no new jobs on a node, and report when the last one has ended."""

import click

from haptera.cli.input import completing
from haptera.cli.main import the_client
from haptera.cli.output.job_words import print_holder
from haptera.cli.output.printing import output_option
from haptera.client import calls
from haptera.model.walltime import parse_duration_ms
from haptera.queue.duty import DutyMode
from haptera.rest.jobs import DutyBody


@click.command()
@click.argument("node", shell_complete=completing.entities)
@click.option("--within", metavar="DURATION", help="Stop jobs that still run then: 30m, 2h.")
@click.option("-m", "--why", required=True, metavar="TEXT", help="The reason, shown to users.")
@output_option
@click.pass_context
def drain(ctx: click.Context, node: str, within: str | None, why: str, output: str) -> None:
    r"""Start no new jobs on NODE; it is drained when its running jobs have ended.

    With --within, jobs that still run then are stopped with SIGTERM, and SIGKILL 10 s later.
    They are queued again if their --retry allows it. `haptera resume` ends a drain.

    \b
    Examples:
      haptera drain rack1n3 -m "new disk"
      haptera drain rack1n3 --within 2h -m "new disk"
    """
    within_s = None if within is None else parse_duration_ms(within) // 1_000
    body = DutyBody(DutyMode.DRAIN, why, within_s)
    print_holder(the_client(ctx).ask(calls.relieve(node.removeprefix("node:"), body)), output)
