"""`haptera jobs`: the jobs that wait, run, or have ended of late, each with what it waits for."""

import click

from haptera.cli.input.selected import job_selector, selected_jobs
from haptera.cli.main import the_client
from haptera.cli.output.job_words import number_of, print_jobs
from haptera.cli.output.printing import Format, names_option, print_names, say
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.queue.job import JobState
from haptera.rest.jobs import JobView


@click.command()
@answers(list[JobView])
@unwatched("`haptera get --watch job` shows jobs as they change")
@click.argument("ids", metavar="[JOB]...", nargs=-1)
@click.option(
    "--state", type=click.Choice([one.value for one in JobState]), help="Only jobs in this state."
)
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@names_option
@click.pass_context
def jobs(
    ctx: click.Context, ids: tuple[str, ...], state: str | None, limit: int, output: str
) -> None:
    r"""Show all jobs, newest first, or the given ones, and why each has not ended.

    \b
    Examples:
      haptera jobs
      haptera jobs --state running -n 20
      haptera jobs job:7 job:8 -o json
      haptera jobs 11-20 'job:* and name=sum'
    """
    client = the_client(ctx)
    left = 0
    if all(one.removeprefix("job:").isdecimal() for one in ids) and ids and state is None:
        found = [client.ask(calls.job(number_of(one))) for one in ids]
    elif ids:
        meant = job_selector(ids)
        found = selected_jobs(client, meant if state is None else f"({meant}) and state={state}")
    else:
        answer = client.ask(calls.jobs(None if state is None else JobState(state), limit=limit))
        found = answer.jobs
        counts = answer.counts
        left = (sum(counts.values()) if state is None else counts.get(state, 0)) - len(found)
    if not Format(output).for_people:
        print_names([f"job:{one.id}" for one in found], found, output)
        return
    which = "job" if state is None else f"{state} job"
    none = f"there is no {which}: haptera submit COMMAND makes one"
    print_jobs(found, output, none=none)
    if left > 0:
        say(f"and {left} more: haptera jobs -n {len(found) + left}", err=True)
