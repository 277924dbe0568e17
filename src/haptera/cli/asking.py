"""`haptera status`, `why` and `get`: how things are, and why they are not as they should be."""

from collections.abc import Sequence

import click

from haptera.api.shapes import Entities, Retried
from haptera.cli.client import Client
from haptera.cli.groups import grouped
from haptera.cli.main import NOT_CONVERGED, the_client
from haptera.cli.printing import Format, output_option, print_data, print_table
from haptera.cli.words import COLOURS, chain_lines, details, duration, printable, sentence, values
from haptera.kinds import KINDS
from haptera.model.desirable import nearest
from haptera.model.errors import HapteraError
from haptera.model.nodeset import fold, members
from haptera.model.views import Condition, EntityView

_SETTLED = (Condition.CONVERGED, Condition.IDLE)


@click.command()
@click.argument("nodeset", required=False)
@click.option("--check", is_flag=True, help="Exit with 4 unless all is as desired.")
@output_option
@click.pass_context
def status(ctx: click.Context, nodeset: str | None, check: bool, output: str) -> None:
    """Show how the cluster stands, or only the nodes of NODESET."""
    answer = _entities(the_client(ctx), nodeset)
    if Format(output) is Format.TABLE:
        _print_status(answer.entities)
    else:
        print_data(answer, output)
    if check and any(view.condition not in _SETTLED for view in answer.entities):
        ctx.exit(NOT_CONVERGED)


@click.command()
@click.argument("selection", metavar="[ENTITY|NODESET]", required=False)
@click.option("-v", "--verbose", is_flag=True, help="Also the chain, and each fact with its age.")
@output_option
@click.pass_context
def why(ctx: click.Context, selection: str | None, verbose: bool, output: str) -> None:
    """Say why something is not as desired.

    Of ENTITY, or of all on NODESET, or of everything.
    """
    client = the_client(ctx)
    if selection is not None and ":" in selection:
        views = [client.get(f"/v1/entities/{selection}", EntityView)]
    else:
        entities = _entities(client, selection).entities
        views = [view for view in entities if view.condition not in _SETTLED]
    if Format(output) is not Format.TABLE:
        print_data(views, output)
        return
    for view in views:
        click.secho(sentence(view), fg=COLOURS[view.condition])
        if verbose:
            for line in details(view):
                click.echo(f"  {line}")
    if not views:
        click.echo("all is as desired")


@click.command()
@click.argument("entity")
@output_option
@click.pass_context
def chain(ctx: click.Context, entity: str, output: str) -> None:
    """Show what is still to be done with ENTITY, and what was tried.

    What was tried is what the parent did itself; a restart of the parent forgets it.
    """
    view = the_client(ctx).get(f"/v1/entities/{entity}", EntityView)
    if Format(output) is not Format.TABLE:
        print_data({"chain": view.chain, "tried": view.tried}, output)
        return
    click.secho(sentence(view), fg=COLOURS[view.condition])
    for one in view.tried:
        click.echo(f"  {duration(one.ago_ms)} ago  {one.part}: {printable(one.outcome)}")
    for line in chain_lines(view.chain):
        click.echo(f"  next  {line}")


@click.command()
@click.argument("entity")
@click.pass_context
def retry(ctx: click.Context, entity: str) -> None:
    """Try ENTITY again at once, whatever its back-off or cool-down."""
    the_client(ctx).ask("POST", f"/v1/entities/{entity}/retry", Retried)
    click.echo(f"{entity} is tried again")


@click.command()
@click.argument("what", metavar="ENTITY|KIND")
@output_option
@click.pass_context
def get(ctx: click.Context, what: str, output: str) -> None:
    """Show one entity, or all of a kind.

    ENTITY is node:NAME, KIND:NAME@NODE or KIND:NAME; KIND is node, service, freeze and so on.
    """
    client = the_client(ctx)
    if ":" not in what and what not in KINDS:
        advice = f"{nearest(what, KINDS)}; a node is written node:{what}"
        raise HapteraError(f"there is no kind {what!r}", do=advice)
    if ":" in what:
        view = client.get(f"/v1/entities/{what}", EntityView)
        _print_views([view], view, output)
    else:
        answer = client.get("/v1/entities", Entities, {"kind": what})
        _print_views(answer.entities, answer.entities, output)


def _entities(client: Client, nodeset: str | None) -> Entities:
    """All entities, or those of the nodes asked for, each of which must be there.

    Raises:
        HapteraError: one is not: a check of a node that nobody declared must not pass.
    """
    if nodeset is None:
        return client.get("/v1/entities", Entities)
    answer = client.get("/v1/entities", Entities, {"nodes": nodeset})
    there = {view.node for view in answer.entities}
    if missing := [one.name for one in members(nodeset) if one.name not in there]:
        raise HapteraError(
            f"no such node: {fold(missing)}", do="see which there are: haptera status"
        )
    return answer


def _print_status(views: Sequence[EntityView]) -> None:
    if not views:
        click.echo("there are no entities")
        return
    groups = grouped(views)
    rows = [
        (
            group.title,
            group.condition.value,
            str(len(group.views)),
            group.folded,
            printable(group.why or ""),
        )
        for group in groups
    ]
    print_table(rows, [COLOURS[group.condition] for group in groups])


def _print_views(views: Sequence[EntityView], data: object, output: str) -> None:
    if Format(output) is not Format.TABLE:
        print_data(data, output)
        return
    rows = [
        (view.entity, view.condition.value, duration(view.since_ms), values(view)) for view in views
    ]
    if rows:
        print_table(rows, [COLOURS[view.condition] for view in views])
