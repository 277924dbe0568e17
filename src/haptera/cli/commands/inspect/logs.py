"""`haptera logs`: what a module, a service or a system has written."""

import contextlib
import select
from typing import Final

import click
import msgspec

from haptera.cli.input import completing
from haptera.cli.input.naming import entity_named
from haptera.cli.input.selected import selected
from haptera.cli.main import the_client
from haptera.cli.output.printing import Format, output_option, print_data, print_error, say
from haptera.cli.output.words import unescaped
from haptera.cli.verb import answers
from haptera.client import Client, calls
from haptera.client.protocol import BACK_OFF_S
from haptera.model.errors import Code, HapteraError
from haptera.rest.schemas import LogView

LINES: Final = 50
_ASK_EVERY_S: Final = 1.0
_MAY_NOT: Final = {Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.OUTSIDE_LIMIT}
# Of these kinds are the entities that write.
_LOGGED: Final = ("module", "service", "system")

follow_option: Final = click.option(
    *("-f", "--follow", "-w", "--watch", "watch"), is_flag=True, help="Follow it until Ctrl-C."
)


@click.command()
@answers(LogView)
@click.argument("entity", metavar="ENTITY", shell_complete=completing.entities)
@click.option("-n", "--lines", type=click.IntRange(1), default=LINES, show_default=True)
@follow_option
@output_option
@click.pass_context
def logs(ctx: click.Context, entity: str, lines: int, watch: bool, output: str) -> None:
    r"""Show the last log lines of a module, a service or a system.

    ENTITY is module:NAME (on the parent), module:NAME@NODE, service:NAME@NODE or system:NAME@NODE.
    For a node, the logs of all its modules, services and systems are shown.

    \b
    Examples:
      haptera logs rack1n1
      haptera logs -n 20 service:web@rack1n1
      haptera logs --follow service:web@rack1n1
    """
    client, entity = the_client(ctx), entity_named(entity)
    if not entity.startswith("node:"):
        show_log(client, entity, lines, output, watch=watch)
    elif watch:
        raise click.UsageError("--follow works with one log: name a module, a service or a system")
    else:
        _print_logs(client, entity, lines, output)


def show_log(client: Client, entity: str, lines: int, output: str, *, watch: bool) -> None:
    """Print the last lines of one log; with `watch`, those that come after them, until Ctrl-C."""
    if watch and not Format(output).for_people:
        raise click.UsageError("--follow prints lines when they arrive: leave out -o")
    answer = client.ask(calls.log(entity))
    last = msgspec.structs.replace(answer, lines=answer.lines[-lines:])
    if not Format(output).for_people:
        print_data(last, output)
        return
    for line in last.lines:
        say(unescaped(line))
    if not last.lines:
        say(f"{entity} has no log lines yet", err=True)
    if watch:
        with contextlib.suppress(KeyboardInterrupt):
            _follow(client, entity, answer.after)


def _follow(client: Client, entity: str, after: str) -> None:
    """Write what is added, until Ctrl-C; no answer: asked again, which is said once.

    Raises:
        RefusedError: one may not ask any more.
    """
    failed = 0
    while True:
        pause_s = BACK_OFF_S[min(failed, len(BACK_OFF_S)) - 1] if failed else _ASK_EVERY_S
        select.select((), (), (), pause_s)
        try:
            told = client.ask(calls.log(entity, after=after))
        except HapteraError as error:
            if error.code in _MAY_NOT:
                raise
            if not failed:
                print_error(error)
            failed += 1
            continue
        if told.anew:
            say("the log was restarted: some lines may be missing", err=True)
        for line in told.lines:
            say(unescaped(line))
        after, failed = told.after, 0


def _print_logs(client: Client, node: str, lines: int, output: str) -> None:
    """The ends of all logs of what is on a node."""
    found = selected(client, node.removeprefix("node:")).entities
    named = [view.entity for view in found if view.kind in _LOGGED]
    logs = [client.ask(calls.log(one)) for one in named]
    last = [msgspec.structs.replace(one, lines=one.lines[-lines:]) for one in logs]
    if not Format(output).for_people:
        print_data(last, output)
        return
    for one in last:
        say(f"==> {one.entity} <==")
        for line in one.lines:
            say(unescaped(line))
    if not last:
        say(f"nothing on {node} has a log", err=True)
