"""`haptera status`, `get` and `retry`: how things are, and trying again."""

from collections.abc import Sequence

import click

from haptera.api.shapes import Entities, Retried
from haptera.cli.client import Client
from haptera.cli.groups import grouped
from haptera.cli.main import NOT_CONVERGED, the_client
from haptera.cli.printing import Format, output_option, print_data, print_table
from haptera.cli.words import COLOURS, duration, printable, values
from haptera.kinds import KINDS
from haptera.model.desirable import nearest
from haptera.model.errors import HapteraError
from haptera.model.nodeset import fold, members
from haptera.model.views import Condition, EntityView

SETTLED = (Condition.CONVERGED, Condition.IDLE)
# What runs the cluster is of interest where it does not run.
_BEHIND = ("module", "freeze", "policy", "budget")


@click.command()
@click.argument("nodeset", required=False)
@click.option("--check", is_flag=True, help="Exit with 4 unless all is as desired.")
@output_option
@click.pass_context
def status(ctx: click.Context, nodeset: str | None, check: bool, output: str) -> None:
    """Show how the cluster stands, or only the nodes of NODESET.

    Modules are shown where something is wrong with them; `haptera get module` shows them all.
    """
    answer = entities_on(the_client(ctx), nodeset)
    if Format(output) is Format.TABLE:
        _print_status(answer.entities)
    else:
        print_data(answer, output)
    if check and any(view.condition not in SETTLED for view in answer.entities):
        ctx.exit(NOT_CONVERGED)


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


def entities_on(client: Client, nodeset: str | None) -> Entities:
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
    shown = [one for one in views if one.kind not in _BEHIND or one.condition not in SETTLED]
    groups = grouped(shown)
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
