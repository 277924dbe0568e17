"""`haptera watch`: each change as it comes, until Ctrl-C."""

import asyncio
import contextlib
import select
from typing import Final

import click
import msgspec

from haptera.cli.input import completing
from haptera.cli.input.selected import selected
from haptera.cli.main import client_of, the_access
from haptera.cli.output.job_words import COLOURS as JOB_COLOURS
from haptera.cli.output.live.watching import follow
from haptera.cli.output.printing import (
    Coloured,
    Format,
    entities_option,
    print_data,
    print_error,
    say,
)
from haptera.cli.output.words import COLOURS, printable, values
from haptera.cli.verb import answers, unwatched
from haptera.client import Access, ApiCall, Arrived, Client, UnreachableError, calls
from haptera.model.answers.views import EntityView
from haptera.model.news import News
from haptera.rest.job_selector import JOB, is_of_jobs
from haptera.rest.jobs import JOBS_MAX, JobView
from haptera.rest.schemas import Event
from haptera.selectors.selector import parse_selector
from haptera.selectors.subscription import parse_wanted

# How long an answer is waited for, and until what changes next is asked for: what changes closer
# together is shown together.
_WAIT_S: Final = 10
_EVERY_S: Final = 0.1


class NotThere(msgspec.Struct, frozen=True, omit_defaults=True):
    """What `-o json` prints of an entity that is gone, or has left what was selected."""

    entity: str
    gone: bool = False
    left: bool = False


@click.command()
@answers(EntityView, JobView, NotThere)
@unwatched("it already prints each change: omit the option")
@entities_option
@click.option(
    "--type",
    "types",
    type=click.Choice([one.value for one in News]),
    multiple=True,
    help="Only changes of this type; repeatable.",
)
@click.argument("selector", required=False, shell_complete=completing.selectors)
@click.pass_context
def watch(ctx: click.Context, selector: str | None, types: tuple[str, ...], output: str) -> None:
    r"""Print a line for each change of what SELECTOR matches, until Ctrl-C.

    Without SELECTOR, all changes. SELECTOR is rack1n[1-4] (nodes and everything on them),
    service:web@rack1n1, condition=stuck, and so on. An entity that no longer matches is reported as
    left. With -o json each change is one line of JSON.

    \b
    Examples:
      haptera watch rack1n[1-4]
      haptera watch --type condition -o json
      haptera watch 'job:* and state=running'
    """
    access = the_access(ctx)
    if selector is not None and is_of_jobs(selector):
        if types:
            raise click.UsageError("jobs change in one way only: leave out --type")
        parse_wanted(None, None, selector)  # an age grows without news
        with contextlib.suppress(KeyboardInterrupt):
            _watch_jobs(client_of(ctx, access), selector, Format(output))
        return
    if selector is not None and _names_nodes(selector):
        selected(client_of(ctx, access), selector)  # What is mistyped would be silent for ever.
    chosen = None if selector is None else parse_selector(selector).text
    call = calls.events(chosen, types=[News(one) for one in types] or None)
    try:
        asyncio.run(_watch(access, call, Format(output)))
    except KeyboardInterrupt:
        return


def _watch_jobs(client: Client, selector: str, output: Format) -> None:
    """Print each job as it is, then again when it has changed."""
    lines: dict[str, str] = {}
    turn: str | None = None
    told: str | None = None
    while True:
        wait_s = None if turn is None else _WAIT_S
        call = calls.jobs(select=selector, limit=JOBS_MAX, since=turn, wait_s=wait_s)
        try:
            answer = client.ask(call)
        except UnreachableError as error:  # tried again and again, said once
            if told != str(error):
                told = str(error)
                print_error(error)
        else:
            told = None
            for job in answer.jobs if turn else reversed(answer.jobs):
                _print_job(job, lines, output)
            for name in (f"{JOB}:{one}" for one in answer.others):
                if lines.pop(name, None) is not None:
                    _print(name, NotThere(name, left=True), output, "  left")
            turn = answer.turn
        select.select((), (), (), _EVERY_S)


def _print_job(job: JobView, lines: dict[str, str], output: Format) -> None:
    name, line = f"{JOB}:{job.id}", printable(f"{job.name}  {job.why}")
    if lines.get(name) != f"{job.state} {line}":
        lines[name] = f"{job.state} {line}"
        state = Coloured(f"{job.state:9}", JOB_COLOURS.get(job.state))
        _print(name, job, output, "  ", state, f"  {line}")


def _names_nodes(selector: str) -> bool:
    """Whether it names nodes one by one, not by a pattern of what may come."""
    return parse_selector(selector).nodes() is not None


async def _watch(access: Access, call: ApiCall[Event], output: Format) -> None:
    lines: dict[str, str] = {}

    def arrived(news: Arrived) -> None:
        for view in news.event.entities:
            line = _line(view)
            # What only grew older is no news.
            if lines.get(view.entity) != line:
                lines[view.entity] = line
                condition = Coloured(f"{view.condition:9}", COLOURS[view.condition])
                _print(view.entity, view, output, "  ", condition, f"  {line}")
        missing = [(NotThere(one, gone=True), "gone") for one in news.event.gone]
        missing += [(NotThere(one, left=True), "left") for one in news.event.left]
        for one, word in missing:
            if lines.pop(one.entity, None) is not None:
                _print(one.entity, one, output, f"  {word}")

    await follow(access, call, arrived)


def _line(view: EntityView) -> str:
    part = view.chain[0].part if view.chain else ""
    why = printable(view.why or "")
    frozen = "" if view.frozen in (None, view.why) else printable(view.frozen or "")
    told = [values(view), "" if why.startswith(part) else part, why, frozen]
    return "  ".join(text for text in told if text)


def _print(entity: str, data: object, output: Format, *line: str | Coloured) -> None:
    """One change, by itself: a line, or for YAML a document."""
    match output:
        case Format.TABLE | Format.WIDE:
            say(f"{entity:24}", *line)
        case Format.NAME:
            say(entity)
        case Format.JSON:
            say(msgspec.json.encode(data).decode())
        case Format.YAML:
            say("---")
            print_data(data, output)
