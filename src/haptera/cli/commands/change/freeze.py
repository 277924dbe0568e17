"""`haptera freeze`: automation stopped for a while."""

from collections.abc import Sequence

import click

from haptera.cli.input import completing
from haptera.cli.main import the_client
from haptera.cli.output.live.redrawing import keep_showing, watch_option
from haptera.cli.output.printing import Format, entities_option, print_names, say
from haptera.cli.output.tables import print_table
from haptera.cli.output.words import printable
from haptera.cli.verb import answers, former_option
from haptera.client import Client, calls
from haptera.kinds.rules import freeze as haptera_freeze
from haptera.model.errors import Code, HapteraError
from haptera.model.walltime import parse_duration_ms, utc_text
from haptera.rest.schemas import FreezeView

EVER = "ever"
_HEADERS = ("SELECTOR", "UNTIL", "OWNER", "ENTITIES", "REASON")


@click.command()
@answers(FreezeView, list[FreezeView])
@click.argument("selector", required=False, shell_complete=completing.selectors)
@click.option("-m", "--why", metavar="TEXT", help="Why it is frozen.")
@former_option("--reason", "--why")
@click.option(
    "--for", "duration", default="1h", help="How long: 30s, 15m, 2h, 1d, or ever; default one hour."
)
@click.option("--even-if-none", is_flag=True, help="Accept a pattern that matches nothing yet.")
@watch_option
@entities_option
@click.pass_context
def freeze(
    ctx: click.Context,
    selector: str | None,
    why: str | None,
    duration: str,
    even_if_none: bool,
    watch: bool,
    output: str,
) -> None:
    r"""Freeze what SELECTOR matches: no step starts there. Without SELECTOR, list freezes.

    Frozen entities are still observed, and running steps finish. SELECTOR uses names, groups and
    attributes: rack1n[1-4] (the nodes and everything on them), service:web@@gpu, and so on. It must
    match something; with --even-if-none, a pattern also covers what is declared later.

    \b
    Examples:
      haptera freeze rack1n[1-4] -m "new fans" --for 2h
      haptera freeze --watch
    """
    client = the_client(ctx)
    if selector is None:
        if why is not None:
            raise click.UsageError("a reason, but no SELECTOR: name what to freeze")
        if watch:
            events = calls.events(kinds=[haptera_freeze.kind.name])
            keep_showing(client, events, lambda: _show(client, output), output)
        else:
            _show(client, output)
        return
    if watch:
        raise click.UsageError("--watch shows what is frozen: leave SELECTOR out")
    for_s = None if duration == EVER else _seconds(duration)
    if why is None:
        raise HapteraError("a freeze needs a reason", do="give one: -m TEXT", code=Code.MISSING)
    view = client.ask(calls.freeze(selector, why, for_s=for_s, even_if_none=even_if_none))
    if Format(output).for_people:
        say(f"frozen: {freeze_sentence(view)}")
    else:
        _print_for_programs([view], view, output)


def _show(client: Client, output: str) -> None:
    views = client.ask(calls.freezes()).freezes
    if Format(output).for_people:
        _print_freezes(views, output)
    else:
        _print_for_programs(views, views, output)


def _print_for_programs(views: Sequence[FreezeView], data: object, output: str) -> None:
    """As `haptera thaw` takes them, or all fields."""
    together = " or ".join(sorted({one.selector for one in views}))
    print_names([together] if together else [], data, output)


def _print_freezes(views: list[FreezeView], output: str) -> None:
    if not views:
        say("nothing is frozen")
        return
    rows = [
        (
            one.selector,
            _end(one),
            one.owner,
            str(one.entities),
            printable(one.reason),
        )
        for one in views
    ]
    print_table(_HEADERS, rows, output)


def freeze_sentence(view: FreezeView) -> str:
    counted = counted_entities(view.entities)
    return f"{view.selector} ({counted}) {_until(view)}, by {view.owner}: {printable(view.reason)}"


def _until(view: FreezeView) -> str:
    return f"until {_end(view)}"


def _end(view: FreezeView) -> str:
    return "thawed" if view.until_s is None else utc_text(view.until_s)


def counted_entities(entities: int) -> str:
    return f"{entities} entit{'y' if entities == 1 else 'ies'}"


def _seconds(duration: str) -> int:
    """A part of a second counts as one."""
    return -(-parse_duration_ms(duration) // 1000)
