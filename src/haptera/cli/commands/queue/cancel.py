"""`haptera cancel`: cancel queued and running jobs."""

from collections.abc import Iterator

import click

from haptera.cli.input.selected import job_selector
from haptera.cli.main import the_client
from haptera.cli.output.job_words import TOLD_MAX, number_of, sentence
from haptera.cli.output.printing import Format, names_option, print_names, say
from haptera.cli.output.tables import print_sentence
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.model.errors import Code, HapteraError
from haptera.rest.jobs import CancelledJobs, JobView, SomeJobs
from haptera.selectors.nodeset import fold


@click.command()
@answers(list[JobView])
@unwatched("`haptera get --watch job` shows jobs as they change")
@click.argument("ids", metavar="JOB...", nargs=-1, required=True)
@click.option("-m", "--why", metavar="TEXT", help="The reason, shown to the submitter.")
@names_option
@click.pass_context
def cancel(ctx: click.Context, ids: tuple[str, ...], why: str | None, output: str) -> None:
    r"""Cancel jobs: queued ones at once, running ones with SIGTERM, and SIGKILL 10 s later.

    Jobs are given by number, by range, or by selector; all are cancelled in one request.

    \b
    Examples:
      haptera cancel job:7
      haptera cancel 7 9 11-20 -m "the input is wrong"
      haptera cancel 'job:* and name=frames and state=queued'
      haptera cancel 'job:* and array=100'
    """
    client = the_client(ctx)
    if len(ids) == 1 and ids[0].removeprefix("job:").isdecimal():
        _print([client.ask(calls.cancel_job(number_of(ids[0]), why=why))], 1, output)
        return
    answer = client.ask(calls.cancel_jobs(job_selector(ids), why=why))
    _print(answer.jobs, answer.cancelled.count, output)
    if answer.ended.count:
        say(f"{_named(answer.ended)} had ended before", err=True)
    if left := "; ".join(_left(answer)):
        ask = "ask their owners, or use a token of scope admin; " if answer.forbidden.count else ""
        do = f"{ask}see which there are: haptera jobs"
        code = Code.FORBIDDEN if answer.forbidden.count else Code.SELECTS_NOTHING
        raise HapteraError(left, do=do, code=code)


def _print(jobs: list[JobView], count: int, output: str) -> None:
    if not Format(output).for_people:
        print_names([f"job:{one.id}" for one in jobs], jobs, output)
        return
    for one in jobs[:TOLD_MAX]:
        print_sentence(sentence(one), output)
    if count > TOLD_MAX:
        print_sentence(f"and {count - TOLD_MAX} more: {count} jobs in all", output)


def _left(answer: CancelledJobs) -> Iterator[str]:
    """What was not cancelled, and why."""
    if answer.forbidden.count:
        yield f"not cancelled, for another submitted them: {_named(answer.forbidden)}"
    if answer.missing.count:
        yield f"not there: {_named(answer.missing)}"


def _named(some: SomeJobs) -> str:
    """Jobs as one selector; of many, how many more there are."""
    more = some.count - len(some.ids)
    return f"job:{fold(map(str, some.ids))}" + (f" and {more} more" if more else "")
