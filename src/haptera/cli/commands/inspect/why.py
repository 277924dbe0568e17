"""`haptera why`: why something is not as it should be."""

from collections.abc import Collection, Sequence
from typing import Final

import click

from haptera.cli.input import completing
from haptera.cli.input.selected import selected, selected_jobs
from haptera.cli.main import the_client
from haptera.cli.output.groups import grouped, together
from haptera.cli.output.health_words import of_health, of_profile
from haptera.cli.output.job_words import holder_sentence
from haptera.cli.output.job_words import sentence as job_sentence
from haptera.cli.output.live.redrawing import (
    keep_asking,
    keep_showing,
    only_tables,
    watch_option,
)
from haptera.cli.output.printing import Format, entities_option, print_entities, say
from haptera.cli.output.tables import print_sentence
from haptera.cli.output.words import (
    COLOURS,
    details,
    of_group,
    outlook,
    printable,
    sentence,
    told,
    unescaped,
)
from haptera.cli.verb import answers
from haptera.client import Client, calls
from haptera.kinds.group import numbered
from haptera.kinds.node import NodeWork, work
from haptera.model.answers.views import SETTLED, Condition, EntityDetail, EntityView
from haptera.model.errors import Code, HapteraError
from haptera.queue.job import ENDED
from haptera.rest.job_selector import is_of_jobs
from haptera.rest.jobs import JOBS_MAX, JobView

_CONSOLE_LINES: Final = 5


@click.command()
@answers(list[EntityDetail], list[EntityView], JobView, list[JobView])
@click.argument(
    "selection",
    metavar="[ENTITY|SELECTOR]",
    required=False,
    shell_complete=completing.selectors,
)
@click.option("-v", "--verbose", is_flag=True, help="Add the chain, and each reading with its age.")
@watch_option
@entities_option
@click.pass_context
def why(ctx: click.Context, selection: str | None, verbose: bool, watch: bool, output: str) -> None:
    r"""Explain why something is not as desired, and show what is frozen.

    Name an ENTITY, or a SELECTOR (rack1n[1-4], 'age(condition)>10m'); without one, everything is
    explained. Entities with the same cause share one line, unless you give -v.

    \b
    Examples:
      haptera why
      haptera why -v node:rack1n1
      haptera why --watch rack1n[1-4]
      haptera why job:7
    """
    client = the_client(ctx)
    if selection is not None and is_of_jobs(selection):
        if watch:
            only_tables(output)
            call = calls.jobs(select=selection, limit=JOBS_MAX)
            keep_asking(client, call, lambda answer: _tell_jobs(answer.jobs, output))
        else:
            _why_jobs(client, selection, output)
    elif watch:
        events = calls.events(selection)
        keep_showing(client, events, lambda: _why(client, selection, verbose, output), output)
    else:
        _why(client, selection, verbose, output)


def _why(client: Client, selection: str | None, verbose: bool, output: str) -> None:
    views = _asked_about(client, selection)
    if views and views[0].entity == selection and (verbose or not Format(output).for_people):
        views = [client.ask(calls.detail(selection))]
    if not Format(output).for_people:
        print_entities([view.entity for view in views], views, output)
        return
    if verbose:
        for view in views:
            _print_whole(view, output)
    else:
        _print_grouped(views, output)
    if len(views) == 1 and views[0].entity == selection:
        lines = [
            *_of_pool(client, views[0]),
            *_of_work(client, views[0]),
            *of_group(views[0], _leases(client, views[0])),
        ]
        for line in lines:
            print_sentence(line, output, indent="  ")
        _print_condition_of_machine(client, views[0], output)
    for line in _of_console(client, views):
        print_sentence(line, output, indent="  console  ")
    if not views:
        say("all is as desired")


def _print_condition_of_machine(client: Client, view: EntityView, output: str) -> None:
    """Print why a node saves power, and what health rules say of it."""
    for line in of_profile(view):
        print_sentence(printable(line), output, indent="  power  ")
    for line in _of_health(client, view):
        print_sentence(line, output, indent="  health  ")


def _leases(client: Client, view: EntityView) -> list[EntityView]:
    """Those of a group, or of a replica's."""
    match view.kind:
        case "group":
            group = view.name
        case "replica":
            group = numbered(view.name)[0]
        case _:
            return []
    return client.ask(calls.entities(f"lease:{group}.*")).entities


def _of_pool(client: Client, view: EntityView) -> list[str]:
    """Where a pool stands, as its controller says."""
    if view.kind != "pool":
        return []
    said = client.ask(calls.queue()).pools.get(view.name)
    return [] if said is None else [printable(said)]


def _of_work(client: Client, view: EntityView) -> list[str]:
    """Why a node takes no jobs, and which it has still."""
    if view.kind != "node" or view.known_value(work.name) in (None, NodeWork.OPEN):
        return []
    holders = client.ask(calls.queue(view.name)).holders
    return [holder_sentence(one) for one in holders if one.who is not None]


def _of_health(client: Client, view: EntityView) -> list[str]:
    """The findings of health rules on a node, and what is done about them."""
    if view.kind != "node":
        return []
    found = client.ask(calls.entities(f"health:{view.name}")).entities
    return [printable(line) for one in found for line in of_health(one)]


def _of_console(client: Client, views: Collection[EntityView]) -> list[str]:
    """What the one node of these that is not as desired wrote last to its console, if recorded."""
    nodes = [view for view in views if view.kind == "node" and view.condition not in SETTLED]
    if len(nodes) != 1:
        return []
    try:
        told = client.ask(calls.log(nodes[0].entity))
    except HapteraError as error:
        if error.code != Code.NOT_FOUND:
            raise
        return []
    return [line for line in map(unescaped, told.lines) if line.strip()][-_CONSOLE_LINES:]


def _why_jobs(client: Client, selection: str, output: str) -> None:
    """The job asked for however it stands; of many, those that have not ended."""
    found = selected_jobs(client, selection)
    one = found[0] if [f"job:{job.id}" for job in found] == [selection] else None
    jobs = [job for job in found if one is not None or job.state not in ENDED]
    if not Format(output).for_people:
        names = [f"job:{job.id}" for job in jobs]
        print_entities(names, jobs if one is None else one, output)
        return
    _tell_jobs(jobs, output)


def _tell_jobs(jobs: Sequence[JobView], output: str) -> None:
    for job in jobs:
        print_sentence(job_sentence(job), output)
    if not jobs:
        say("all of them have ended")


def _print_whole(view: EntityView, output: str) -> None:
    print_sentence(sentence(view), output, colour=COLOURS[view.condition])
    for line in details(view):
        print_sentence(line, output, indent="  ")
    if isinstance(view, EntityDetail):
        for line in told(view):
            print_sentence(line, output, indent="  agent  ")


def _print_grouped(views: Collection[EntityView], output: str) -> None:
    for group in grouped(views):
        print_sentence(together(group), output, colour=COLOURS[group.condition])
        if group.condition is Condition.STUCK and len(group.views) == 1:
            for line in outlook(group.views[0]):
                print_sentence(line, output, indent="  ")


def _asked_about(client: Client, selection: str | None) -> list[EntityView]:
    """The entity asked for however it stands; of many, those not as desired, or frozen.

    Raises:
        HapteraError: nothing is meant by that.
    """
    found = selected(client, selection).entities
    if [view.entity for view in found] == [selection]:
        return found
    return [view for view in found if view.condition not in SETTLED or view.frozen is not None]
