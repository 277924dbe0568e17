"""`haptera why`, `chain` and `logs`: why something is not as it should be, and what was tried."""

from typing import Final

import click
import msgspec

from haptera.cli.commands.get import selected
from haptera.cli.input import completing
from haptera.cli.input.naming import entity_named
from haptera.cli.main import the_client
from haptera.cli.output.following import follow
from haptera.cli.output.groups import grouped, together
from haptera.cli.output.printing import (
    Format,
    entities_option,
    output_option,
    print_data,
    print_entities,
)
from haptera.cli.output.redrawing import keep_showing, watch_option
from haptera.cli.output.tables import print_sentence
from haptera.cli.output.words import (
    COLOURS,
    chain_lines,
    details,
    explained_lines,
    printable,
    sentence,
    told,
    tried_lines,
)
from haptera.client import Client, calls
from haptera.model.explained import Explained
from haptera.model.views import SETTLED, EntityDetail, EntityView, LinkView, TriedView
from haptera.rest.schemas import LogView

_LINES: Final = 50
# Of these kinds are the entities that write.
_LOGGED: Final = ("module", "service")


class ChainForm(msgspec.Struct, frozen=True):
    """What `chain -o json` prints: the parent's view of what is to be done, and its agent's.

    Without the word of an agent, `unasked` says why it could not be had, if there should be one.
    """

    chain: list[LinkView]
    explained: Explained | None
    tried: list[TriedView]
    agent: EntityView | None
    unasked: str | None


@click.command()
@click.argument(
    "selection",
    metavar="[ENTITY|SELECTOR]",
    required=False,
    shell_complete=completing.selectors,
)
@click.option("-v", "--verbose", is_flag=True, help="Also the chain, and each fact with its age.")
@watch_option
@entities_option
@click.pass_context
def why(ctx: click.Context, selection: str | None, verbose: bool, watch: bool, output: str) -> None:
    r"""Say why something is not as desired, and what is frozen.

    Of ENTITY, or of all that SELECTOR means (rack1n[1-4], 'age(condition)>10m'), or of everything.
    What has one cause is told in one line, unless -v asks for each.

    \b
    Examples:
      haptera why
      haptera why -v node:rack1n1
      haptera why --watch rack1n[1-4]
    """
    client = the_client(ctx)
    if watch:
        events = calls.events(selection)
        keep_showing(client, events, lambda: _why(client, selection, verbose, output), output)
    else:
        _why(client, selection, verbose, output)


def _why(client: Client, selection: str | None, verbose: bool, output: str) -> None:
    views = _asked_about(client, selection)
    if views and views[0].entity == selection and (verbose or not Format(output).for_people):
        views = [_detail(client, selection)]
    if not Format(output).for_people:
        print_entities([view.entity for view in views], views, output)
        return
    if verbose:
        for view in views:
            _print_whole(view, output)
    else:
        for group in grouped(views):
            print_sentence(together(group), output, colour=COLOURS[group.condition])
    if not views:
        click.echo("all is as desired")


@click.command()
@click.argument("entity", shell_complete=completing.entities)
@watch_option
@entities_option
@click.pass_context
def chain(ctx: click.Context, entity: str, watch: bool, output: str) -> None:
    r"""Show what is still to be done with ENTITY and why, and what was tried, by whom.

    A restart of either forgets what it has tried.

    \b
    Examples:
      haptera chain rack1n1
      haptera chain service:web@rack1n1 -o json
      haptera chain --watch node:rack1n1
    """
    client, entity = the_client(ctx), entity_named(entity)
    if watch:
        events = calls.events(entity)
        keep_showing(client, events, lambda: _chain(client, entity, output), output)
    else:
        _chain(client, entity, output)


def _chain(client: Client, entity: str, output: str) -> None:
    view = _detail(client, entity)
    if not Format(output).for_people:
        form = ChainForm(view.chain, view.explained, view.tried, view.agent, view.unasked)
        print_entities([entity], form, output)
        return
    print_sentence(sentence(view), output, colour=COLOURS[view.condition])
    told_of = [("parent", line) for line in tried_lines(view)]
    told_of += [("agent", line) for line in told(view)]
    told_of += [("next", line) for line in chain_lines(view.chain, view.explained)]
    for label, line in [*told_of, *explained_lines(view.explained)]:
        print_sentence(line, output, indent=f"  {label:<7} ")


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


def _print_whole(view: EntityView, output: str) -> None:
    print_sentence(sentence(view), output, colour=COLOURS[view.condition])
    for line in details(view):
        print_sentence(line, output, indent="  ")
    if isinstance(view, EntityDetail):
        for line in told(view):
            print_sentence(line, output, indent="  agent  ")


def _asked_about(client: Client, selection: str | None) -> list[EntityView]:
    """The entity asked for however it stands; of many, those not as desired, or frozen.

    Raises:
        HapteraError: nothing is meant by that.
    """
    found = selected(client, selection).entities
    if [view.entity for view in found] == [selection]:
        return found
    return [view for view in found if view.condition not in SETTLED or view.frozen is not None]


def _detail(client: Client, entity: str) -> EntityDetail:
    return client.ask(calls.detail(entity))
