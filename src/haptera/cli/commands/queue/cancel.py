"""`haptera cancel`: cancel queued and running jobs."""

import click

from haptera.cli.main import the_client
from haptera.cli.output.job_words import number_of, sentence
from haptera.cli.output.printing import Format, names_option, print_names
from haptera.cli.output.tables import print_sentence
from haptera.client import calls
from haptera.rest.jobs import JobView


@click.command()
@click.argument("ids", metavar="JOB...", nargs=-1, required=True)
@click.option("-m", "--why", metavar="TEXT", help="The reason, shown to the submitter.")
@names_option
@click.pass_context
def cancel(ctx: click.Context, ids: tuple[str, ...], why: str | None, output: str) -> None:
    r"""Cancel jobs: queued ones at once, running ones with SIGTERM, and SIGKILL 10 s later.

    \b
    Examples:
      haptera cancel job:7
      haptera cancel 7 8 9 -m "the input is wrong"
    """
    client = the_client(ctx)
    keys = [number_of(one) for one in ids]
    views = list[JobView]()
    for key in keys:
        views.append(client.ask(calls.cancel_job(key, why=why)))
        if Format(output).for_people:
            print_sentence(sentence(views[-1]), output)
    if not Format(output).for_people:
        print_names([f"job:{one.id}" for one in views], views, output)
