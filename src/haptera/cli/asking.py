"""`haptera status`, `get` and `retry`: how things are, and trying again."""

from collections.abc import Sequence

import click

from haptera.api.shapes import Entities, Past, Retried
from haptera.cli.client import Client
from haptera.cli.groups import SETTLED, grouped, in_front
from haptera.cli.main import NOT_CONVERGED, the_client
from haptera.cli.printing import Format, output_option, print_data, print_table
from haptera.cli.words import COLOURS, duration, printable, values
from haptera.kinds import KINDS
from haptera.model.desirable import nearest
from haptera.model.errors import HapteraError
from haptera.model.nodeset import fold, members
from haptera.model.past import PastView
from haptera.model.selector import ALL
from haptera.model.views import Condition, EntityView
from haptera.model.walltime import parse_when, utc_text_s
from haptera.runtime import clock

_HELD_UP = (Condition.WAITING, Condition.STUCK)


@click.command()
@click.argument("selector", required=False)
@click.option("--check", is_flag=True, help="Exit with 4 unless all is as desired.")
@output_option
@click.pass_context
def status(ctx: click.Context, selector: str | None, check: bool, output: str) -> None:
    """Show how the cluster stands, or only what SELECTOR means (rack1n[1-4], service:web@rack*).

    Modules are shown where something is wrong with them; `haptera get module` shows them all.
    """
    answer = selected(the_client(ctx), selector)
    if Format(output) is Format.TABLE:
        _print_status(answer.entities)
    else:
        print_data(answer, output)
    if check and any(view.condition not in SETTLED for view in answer.entities):
        ctx.exit(NOT_CONVERGED)


@click.command()
@click.argument("selection", metavar="ENTITY|SELECTOR")
@click.pass_context
def retry(ctx: click.Context, selection: str) -> None:
    """Try ENTITY again at once, whatever its back-off or cool-down.

    Or all that SELECTOR means (rack1n[1-4], service:web@rack*) and that waits or is stuck.
    """
    client = the_client(ctx)
    found = selected(client, selection).entities
    tried = [one.entity for one in found if one.entity == selection or one.condition in _HELD_UP]
    for entity in tried:
        client.ask("POST", f"/v1/entities/{entity}/retry", Retried)
        click.echo(f"{entity} is tried again")
    if not tried:
        click.echo("nothing of it waits or is stuck")


@click.command()
@click.argument("what", metavar="ENTITY|KIND")
@click.option("--at", help="As it was then: 10m (ago), 2h, or 2026-11-21 18:00 (UTC).")
@output_option
@click.pass_context
def get(ctx: click.Context, what: str, at: str | None, output: str) -> None:
    """Show one entity, or all of a kind.

    ENTITY is node:NAME, KIND:NAME@NODE or KIND:NAME; KIND is node, service, freeze and so on.
    """
    client = the_client(ctx)
    if ":" not in what and what not in KINDS:
        advice = f"{nearest(what, KINDS)}; a node is written node:{what}"
        raise HapteraError(f"there is no kind {what!r}", do=advice)
    if at is not None:
        _print_past(past(client, what if ":" in what else None, at), what, output)
        return
    if ":" in what:
        view = client.get(f"/v1/entities/{what}", EntityView)
        _print_views([view], view, output)
    else:
        answer = client.get("/v1/entities", Entities, {"kind": what})
        _print_views(answer.entities, answer.entities, output)


def selected(client: Client, selector: str | None) -> Entities:
    """All entities, or those that a selector means; nodes named one by one must all be there.

    Raises:
        HapteraError: one is not, or nothing is meant: a check of what is not there must not pass.
    """
    if selector is None:
        return client.get("/v1/entities", Entities)
    if {":", ALL} & set(selector):
        answer = client.get("/v1/entities", Entities, {"select": selector})
        if not answer.entities:
            raise HapteraError(f"there is no {selector}", do="see which there are: haptera status")
        return answer
    answer = client.get("/v1/entities", Entities, {"nodes": selector})
    there = {view.node for view in answer.entities}
    if missing := [one.name for one in members(selector) if one.name not in there]:
        raise HapteraError(
            f"no such node: {fold(missing)}", do="see which there are: haptera status"
        )
    return answer


def past(client: Client, selector: str | None, at: str) -> Past:
    """How what a selector means, or all, was at a time."""
    query = {"at": str(parse_when(at, clock.wall_s()))}
    return client.get("/v1/past", Past, query | ({} if selector is None else {"select": selector}))


def _print_past(answer: Past, what: str, output: str) -> None:
    views = [one for one in answer.entities if what in (one.entity, one.entity.partition(":")[0])]
    if Format(output) is not Format.TABLE:
        print_data(views, output)
        return
    at = utc_text_s(int(answer.at_s))
    if not views:
        raise HapteraError(f"there was no {what} at {at}", do="see what changed: haptera history")
    click.echo(f"as it was at {at}")
    print_table([past_row(view) for view in views])


def past_row(view: PastView) -> tuple[str, ...]:
    """One entity as it was: where it stood, what was known and wanted, and why it stood so."""
    names = [name for name in view.desired if name in view.observed] or list(view.observed)
    known = " ".join(_then(view, name) for name in names)
    return view.entity, view.condition or "-", printable(known or "-"), printable(view.why or "")


def _then(view: PastView, name: str) -> str:
    observed, wanted = view.observed[name], view.desired.get(name)
    wish = "" if wanted is None or str(wanted) == observed else f"→{wanted}"
    return f"{name}={observed}{wish}"


def _print_status(views: Sequence[EntityView]) -> None:
    if not views:
        click.echo("there are no entities")
        return
    groups = grouped(in_front(views))
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
