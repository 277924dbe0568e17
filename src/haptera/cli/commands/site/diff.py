"""`haptera diff`: a site's files beside what is in force, or two times beside each other."""

from collections.abc import Iterable

import click

from haptera.cli.input import completing
from haptera.cli.input.selected import past
from haptera.cli.input.sites import site_body
from haptera.cli.main import REFUSED, client_of, the_access, the_client
from haptera.cli.output.differences import lines
from haptera.cli.output.live.redrawing import keep_showing, watch_option
from haptera.cli.output.printing import Format, entities_option, print_entities, print_error, say
from haptera.cli.verb import answers
from haptera.client import Client, UnreachableError, calls
from haptera.model.answers.past import PastView
from haptera.model.errors import HapteraError
from haptera.model.news import News
from haptera.model.walltime import utc_text_s
from haptera.rest.schemas import Difference, DifferenceView, SiteBody

# As of diff(1): 1 is said of files that differ, so that what goes wrong is 2.
DIFFERS = REFUSED
TROUBLE = 2
_COLOURS = {"-": "red", "+": "green"}


@click.command()
@answers(Difference, list[DifferenceView])
@click.argument("files", metavar="[FILE]...", nargs=-1, shell_complete=completing.files)
@click.option("--at", "times", multiple=True, help="Compare two times, or one time and now.")
@click.option(
    "--select",
    metavar="SELECTOR",
    shell_complete=completing.selectors,
    help="With --at: only what this matches.",
)
@watch_option
@entities_option
@click.pass_context
def diff(
    ctx: click.Context,
    files: tuple[str, ...],
    times: tuple[str, ...],
    select: str | None,
    watch: bool,
    output: str,
) -> int:
    r"""Compare a site's files with the state in force, or the state at two times.

    FILE is a path, a folder, or - for standard input; several files are one site. Lines with - are
    in force, lines with + are in the files. Values of other owners name their owner.

    With --at, lines with - are the first time, lines with + the second, or now. TIME is an age
    (10m, 2h) or a date and time in UTC (2026-11-21 18:00).

    Exit codes: 0 no difference, 1 differences, 2 a file is wrong.

    \b
    Examples:
      haptera diff site.yaml
      haptera export | haptera diff -
      haptera diff --at 2h --at 1h --select rack1n[1-4]
    """
    if bool(files) == bool(times) or len(times) > 2 or (select is not None and not times):
        raise click.UsageError("name the files of a site, or a time or two with --at")
    if times:
        if watch:
            raise click.UsageError("a past state does not change: leave out --watch or --at")
        return _diff_times(the_client(ctx), times, select, output)
    try:
        access = the_access(ctx)
        body = site_body(files, access.constants)
        client, title = client_of(ctx, access), " ".join(files)
        if watch:
            _keep_showing(client, body, title, output)
            return 0
        return DIFFERS if _show(client, body, title, output) else 0
    except UnreachableError:
        raise
    except HapteraError as error:
        print_error(error)
        return TROUBLE


def _keep_showing(client: Client, body: SiteBody, title: str, output: str) -> None:
    def show() -> None:
        if not _show(client, body, title, output):
            say("nothing differs")

    keep_showing(client, calls.events(types=[News.DESIRED, News.GONE]), show, output)


def _show(client: Client, body: SiteBody, title: str, output: str) -> bool:
    """Print in what they differ; whether they do."""
    answer = client.ask(calls.diff(body))
    found = answer.differences
    if not Format(output).for_people:
        print_entities([one.entity for one in found], answer, output)
    elif found:
        _print_lines(found, f"in force, revision {answer.revision}", title)
    return bool(found)


def _diff_times(client: Client, times: tuple[str, ...], select: str | None, output: str) -> int:
    then, later = (past(client, select, time) for time in (*times, "0s")[:2])
    found = changed_between(then.entities, later.entities)
    if not Format(output).for_people:
        print_entities([one.entity for one in found], found, output)
    elif found:
        _print_lines(found, *(utc_text_s(int(one.at_s)) for one in (then, later)))
    return DIFFERS if found else 0


def _print_lines(found: Iterable[DifferenceView], before: str, after: str) -> None:
    say(f"--- {before}\n+++ {after}")
    for line in lines(found):
        say(line, fg=_COLOURS[line[0]])


def changed_between(then: Iterable[PastView], later: Iterable[PastView]) -> list[DifferenceView]:
    """Each value that was another at the later time; `want` is before those that are desired."""
    before = {one.entity: _values(one) for one in then}
    after = {one.entity: _values(one) for one in later}
    pairs = {
        (entity, name): (before.get(entity, {}).get(name), after.get(entity, {}).get(name))
        for values in (before, after)
        for entity, some in values.items()
        for name in some
    }
    return [
        DifferenceView(entity, name, was, now)
        for (entity, name), (was, now) in sorted(pairs.items(), key=lambda one: str(one[0]))
        if was != now
    ]


def _values(view: PastView) -> dict[str | None, str | int]:
    values: dict[str | None, str | int] = {None: "declared"}
    values.update((f"want {name}", value) for name, value in view.desired.items())
    values.update(view.observed.items())
    if view.condition is not None:
        values["stands"] = view.condition
    return values
