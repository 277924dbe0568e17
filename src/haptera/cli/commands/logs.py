"""`haptera logs`: what a module or a service has written."""

from typing import Final

import click

from haptera.cli.input import completing
from haptera.cli.input.naming import entity_named
from haptera.cli.input.selected import selected
from haptera.cli.main import the_client
from haptera.cli.output.following import follow
from haptera.cli.output.printing import Format, output_option, print_data
from haptera.cli.output.words import printable
from haptera.client import Client, calls
from haptera.rest.schemas import LogView

_LINES: Final = 50
# Of these kinds are the entities that write.
_LOGGED: Final = ("module", "service")


@click.command()
@click.argument("entity", metavar="ENTITY", shell_complete=completing.entities)
@click.option("-n", "--lines", type=click.IntRange(1), default=_LINES, show_default=True)
@click.option(
    "-f",
    "--follow",
    "-w",
    "--watch",
    "watch",
    is_flag=True,
    help="Go on with what is added, until Ctrl-C.",
)
@output_option
@click.pass_context
def logs(ctx: click.Context, entity: str, lines: int, watch: bool, output: str) -> None:
    r"""Show the end of what a module or a service has written.

    ENTITY is module:NAME (the parent's own), module:NAME@NODE or service:NAME@NODE; of a node it is
    what all modules and services on it have written.

    \b
    Examples:
      haptera logs rack1n1
      haptera logs -n 20 service:web@rack1n1
      haptera logs --follow service:web@rack1n1
    """
    if watch and not Format(output).for_people:
        raise click.UsageError("--follow writes lines as they come: leave out -o")
    client, entity = the_client(ctx), entity_named(entity)
    if entity.startswith("node:"):
        if watch:
            raise click.UsageError("--follow is of one log: name a module or a service")
        _print_logs(client, entity, lines, output)
        return
    call = calls.log(entity)
    answer = client.ask(call)
    last = LogView(answer.entity, answer.lines[-lines:])
    if not Format(output).for_people:
        print_data(last, output)
        return
    for line in last.lines:
        click.echo(printable(line))
    if not last.lines:
        click.echo(f"{entity} has written nothing", err=True)
    if watch:
        follow(client, call, answer)


def _print_logs(client: Client, node: str, lines: int, output: str) -> None:
    """The ends of all logs of what is on a node."""
    found = selected(client, node.removeprefix("node:")).entities
    named = [view.entity for view in found if view.kind in _LOGGED]
    logs = [client.ask(calls.log(one)) for one in named]
    last = [LogView(one.entity, one.lines[-lines:]) for one in logs]
    if not Format(output).for_people:
        print_data(last, output)
        return
    for one in last:
        click.echo(f"==> {one.entity} <==")
        for line in one.lines:
            click.echo(printable(line))
    if not last:
        click.echo(f"nothing on {node} has a log", err=True)
