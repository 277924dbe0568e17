"""`haptera lemons`: the nodes on which more went wrong than on others."""

import click

from haptera.cli.input import completing
from haptera.cli.input.selected import selected
from haptera.cli.main import the_client
from haptera.cli.output.printing import Format, names_option, print_names
from haptera.cli.output.tables import print_table
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.model.answers.lemons import Lemon
from haptera.rest.lemons import Lemons
from haptera.rest.query import LEMON_DAYS

_HEADERS = ("NODE", "LOST", "JOBS FAILED", "RESTARTS", "ILL", "STEPS FAILED", "EXCESS")


@click.command()
@answers(Lemons)
@unwatched("it counts weeks: run it again")
@click.argument("selector", required=False, shell_complete=completing.selectors)
@click.option(
    "--days",
    type=click.IntRange(1, LEMON_DAYS),
    default=LEMON_DAYS,
    show_default=True,
    help="Count what began within so many days.",
)
@names_option
@click.pass_context
def lemons(ctx: click.Context, selector: str | None, days: int, output: str) -> None:
    r"""List the nodes on which anything went wrong in the last four weeks, the worst first.

    Counted is how often a node was lost, jobs of the queue failed on it, a replica or a service of
    it failed and was to be restarted, a health rule began to speak of it, and a step failed on it
    or on what is on it. EXCESS adds up how many times the average of all nodes each count is.

    \b
    Examples:
      haptera lemons
      haptera lemons 'rack1*' --days 7
    """
    client = the_client(ctx)
    found = client.ask(calls.lemons(selector, days=days))
    if selector is not None and not found.nodes:
        selected(client, selector)
    if Format(output).for_people:
        none = f"nodes on which something went wrong: 0 of {found.nodes}"
        print_table(_HEADERS, [_row(one) for one in found.lemons], output, none=none)
    else:
        print_names([one.node for one in found.lemons], found, output)


def _row(one: Lemon) -> tuple[str, ...]:
    counts = (one.lost, one.failed_jobs, one.restarts, one.ill, one.failed_steps)
    return one.node, *map(str, counts), f"{one.excess:.1f}"
