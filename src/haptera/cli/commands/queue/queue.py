"""`haptera queue`: who takes jobs, what waits, and what there is too little of."""

import click

from haptera.cli.main import the_client
from haptera.cli.output.printing import Format, output_option, print_data, say
from haptera.cli.output.tables import print_table
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.rest.jobs import HolderView, QueueView

_HEADERS = ("NODE", "DUTY", "CPUS", "MB", "FREE", "FREE-MB", "JOBS", "LIMITS", "WHY")


@click.command()
@answers(QueueView)
@unwatched("`haptera get --watch job` shows jobs as they change")
@output_option
@click.pass_context
def queue(ctx: click.Context, output: str) -> None:
    r"""Show the nodes that run jobs, and the number of queued jobs by size.

    \b
    Examples:
      haptera queue
      haptera queue -o json
    """
    view = the_client(ctx).ask(calls.queue())
    if not Format(output).for_people:
        print_data(view, output)
        return
    print_table(_HEADERS, [_row(one) for one in view.holders], output)
    for lane in view.lanes:
        where = "" if lane.backend is None else f" for {lane.backend}"
        say(f"{lane.waiting} waiting of {lane.size}{where}")
    for wanted in view.wanted:
        say(f"no place now for {wanted.count} of {wanted.size}")
    for name, said in view.pools.items():
        say(f"pool:{name}: {said}")
    if not view.holders:
        say("no node takes jobs: give it cpus and memory_mb", err=True)


def _row(one: HolderView) -> tuple[str, ...]:
    return (
        one.name,
        one.duty.value,
        str(one.capacity.cpus),
        str(one.capacity.memory_mb),
        str(one.free.cpus),
        str(one.free.memory_mb),
        str(len(one.jobs)),
        "" if one.limits is None else one.limits.value,
        one.reason or "",
    )
