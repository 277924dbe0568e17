"""`haptera trial`: another version of a group beside it, compared, promoted and taken back."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import click

from haptera.cli.commands.change.set import dry_run_option, write
from haptera.cli.input import completing
from haptera.cli.input.naming import entity_named
from haptera.cli.input.terms import WriteTerms, terms_options
from haptera.cli.lazy import Words
from haptera.cli.main import the_client
from haptera.cli.output.live.redrawing import keep_polling, only_tables, watch_option
from haptera.cli.output.printing import Format, entities_option, output_option, print_data
from haptera.cli.output.tables import print_table
from haptera.cli.verb import answers, unwatched
from haptera.client import Client, calls
from haptera.controllers.trials import (
    TrialReplica,
    TrialStatus,
    is_on_trial,
    trial_statuses,
)
from haptera.kinds import group, lease, replica
from haptera.kinds.group import TRIALS_MAX, GroupVersion
from haptera.model.answers.views import EntityView
from haptera.model.entity import parse_entity
from haptera.model.errors import HapteraError
from haptera.model.walltime import parse_duration_ms, utc_text
from haptera.rest.schemas import Bulk
from haptera.runtime import clock

_KINDS: Final = (group.kind.name, replica.kind.name, lease.kind.name)
_HEADERS: Final = ("GROUP", "REPLICA", "RUN", "EQUAL", "DIFFERENT", "FIRST", "LEADS", "OWN UNTIL")
# How long the group's own stay beside a trial that leads, where nobody says.
KEEP: Final = "10m"
_MS_PER_S: Final = 1_000


@click.group(cls=Words)
def trial() -> None:
    """Try another version of a group beside it, promote it, and take that back."""


_group_argument = click.argument("name", metavar="GROUP", shell_complete=completing.entities)


def _writing(command: Callable[..., Any]) -> Callable[..., Any]:
    """The declarations of what is one write to a group, as `haptera set` could make it."""
    for one in (click.pass_context, entities_option, terms_options, dry_run_option):
        command = one(command)
    command = answers(EntityView, Bulk)(command)
    return unwatched("`haptera trial status --watch` shows what comes of it")(command)


@trial.command()
@_group_argument
@click.argument("command")
@click.option(
    "--replicas",
    type=click.IntRange(1, TRIALS_MAX),
    default=1,
    show_default=True,
    help="How many replicas run it.",
)
@click.option(
    "--compare",
    metavar="HOW",
    help="Compare outputs that are JSON objects by a member, or without some: 'by id, without at'.",
)
@_writing
def start(
    ctx: click.Context, name: str, command: str, replicas: int, compare: str | None, **terms: Any
) -> None:
    r"""Start replicas of another version, which hear what GROUP hears and say nothing.

    What they would say is compared with the outputs of the leader.

    \b
    Examples:
      haptera trial start ledger "/srv/ledger-2 --live"
      haptera trial start ledger /srv/ledger-2 --replicas 3 --compare "by order, without at"
    """
    values = {group.trial.name: command, group.trials.name: str(replicas)}
    if compare is not None:
        values[group.compare.name] = compare
    _write(ctx, name, values, begins=True, **terms)


@trial.command()
@answers(list[TrialStatus])
@click.argument("name", metavar="[GROUP]", required=False, shell_complete=completing.entities)
@watch_option
@output_option
@click.pass_context
def status(ctx: click.Context, name: str | None, watch: bool, output: str) -> None:
    r"""Show how trials do: what runs, which outputs differ, and which version leads.

    \b
    Examples:
      haptera trial status
      haptera trial status ledger --watch
    """
    client = the_client(ctx)
    if watch:
        only_tables(output)
        keep_polling(lambda: _statuses(client, name), lambda found: _show(found, output))
    else:
        _show(_statuses(client, name), output)


@trial.command()
@_group_argument
@click.option(
    "--keep",
    metavar="DURATION",
    default=KEEP,
    show_default=True,
    help="How long the own replicas stay as standbys: 30s, 2h, or ever.",
)
@_writing
def promote(ctx: click.Context, name: str, keep: str, **terms: Any) -> None:
    r"""Have the trial lead GROUP; its own replicas stay beside it for a while, then end.

    `haptera trial undo` takes it back, also later: the own replicas are started again then.

    \b
    Examples:
      haptera trial promote ledger
      haptera trial promote ledger --keep 2h -m "no output differs"
    """
    kept_ms = None if keep == "ever" else parse_duration_ms(keep)
    until = None if kept_ms is None else str(int(clock.wall_s()) + kept_ms // _MS_PER_S)
    _write(
        ctx, name, {group.version.name: GroupVersion.TRIAL, group.own_until.name: until}, **terms
    )


@trial.command()
@_group_argument
@_writing
def undo(ctx: click.Context, name: str, **terms: Any) -> None:
    r"""Have the own version of GROUP lead again; the trial goes on beside it.

    A trial that leads does so until one of the own replicas runs.

    \b
    Examples:
      haptera trial undo ledger
      haptera trial undo ledger -m "it is slower"
    """
    _write(ctx, name, {group.version.name: GroupVersion.OWN, group.own_until.name: None}, **terms)


@trial.command()
@_group_argument
@_writing
def abort(ctx: click.Context, name: str, **terms: Any) -> None:
    r"""End the trial of GROUP; one that leads does so until one of the own replicas runs.

    \b
    Examples:
      haptera trial abort ledger
      haptera trial abort ledger -m "it differs"
    """
    _write(ctx, name, dict.fromkeys(one.name for one in group.OF_TRIALS), **terms)


def _write(
    ctx: click.Context,
    name: str,
    values: Mapping[str, str | None],
    *,
    begins: bool = False,
    terms: WriteTerms,
    dry_run: bool,
    output: str,
) -> None:
    """One write, to a group that has a trial, or to one that `begins` a trial and has none."""
    entity = _group_named(name)
    tried = the_client(ctx).ask(calls.entity(entity)).desired_value(group.trial.name)
    if begins and tried is not None:
        what, do = "has a trial already", f"end that first: haptera trial abort {name}"
        raise HapteraError(what, where=entity, do=do)
    if not begins and tried is None:
        do = f"begin one: haptera trial start {name} COMMAND"
        raise HapteraError("has no trial", where=entity, do=do)
    write(ctx, entity, values, terms, dry_run=dry_run, output=output)


def _group_named(name: str) -> str:
    """The group of a name.

    Raises:
        HapteraError: it names something else.
    """
    entity = entity_named(name, group.kind.name)
    if parse_entity(entity).kind != group.kind.name:
        raise HapteraError(f"{entity} is no group", do="name a group: haptera get group")
    return entity


def _statuses(client: Client, name: str | None) -> list[TrialStatus]:
    if name is not None:
        # What is not there is not shown as an empty list.
        name = client.ask(calls.entity(_group_named(name))).name
    views = [one for kind in _KINDS for one in client.ask(calls.entities(kind=kind)).entities]
    asked = [
        (client.ask(calls.detail(one.entity)).agent or one) if is_on_trial(one) else one
        for one in views
    ]
    return [one for one in trial_statuses(asked) if name in (None, one.group)]


def _show(found: list[TrialStatus], output: str) -> None:
    if not Format(output).for_people:
        print_data(found, output)
        return
    none = "there is no trial: `haptera trial start GROUP COMMAND` begins one"
    print_table(_HEADERS, list(_rows(found)), output, none=none)


def _rows(statuses: Iterable[TrialStatus]) -> Iterable[tuple[str, ...]]:
    for one in statuses:
        until = "-" if one.own_until is None else utc_text(one.own_until)
        rows = [*map(_cells, one.replicas)] or [("-",) * 5]
        for its in rows:
            yield one.group, *its, one.leads or "-", until


def _cells(its: TrialReplica) -> tuple[str, ...]:
    values = (its.entity, its.run, its.equal, its.different, its.first)
    return tuple("-" if value is None else str(value) for value in values)
