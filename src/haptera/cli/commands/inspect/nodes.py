"""`haptera nodes`: all nodes in a few lines, those together that stand alike."""

from collections import defaultdict
from typing import Final, NamedTuple

import click

from haptera.cli.input import completing
from haptera.cli.input.selected import selected
from haptera.cli.main import the_client
from haptera.cli.output.live.redrawing import keep_showing, watch_option
from haptera.cli.output.printing import Format, entities_option, print_entities
from haptera.cli.output.tables import print_table
from haptera.cli.output.words import printable
from haptera.cli.verb import answers
from haptera.client import Client, calls
from haptera.kinds import node
from haptera.model.answers.views import Condition, EntityView
from haptera.rest.jobs import HolderView
from haptera.selectors.nodeset import fold

_HEADERS: Final = ("STATE", "POWER", "JOBS", "COUNT", "NODES", "WHY")
# What asks for attention comes last, next to the prompt.
_ORDER: Final = tuple(Condition)


class _Standing(NamedTuple):
    """Nodes alike, in one line: `jobs` as `haptera queue` has it."""

    condition: Condition
    power: str
    jobs: str
    why: str


@click.command()
@answers(list[EntityView])
@click.argument("selector", required=False, shell_complete=completing.selectors)
@watch_option
@entities_option
@click.pass_context
def nodes(ctx: click.Context, selector: str | None, watch: bool, output: str) -> None:
    r"""Show all nodes, or those that SELECTOR matches, in a line for each state.

    Nodes are in one line if their state, their power and what they take of jobs are the same, for
    the same reason.

    \b
    Examples:
      haptera nodes
      haptera nodes rack1n[1-40] --watch
    """
    client = the_client(ctx)
    meant = f"{node.kind.name}:*"
    if selector is not None:
        meant = f"({selector}) and {meant}"
    if watch:
        keep_showing(client, calls.events(meant), lambda: _show(client, meant, output), output)
    else:
        _show(client, meant, output)


def _show(client: Client, meant: str, output: str) -> None:
    views = selected(client, meant).entities
    if not Format(output).for_people:
        print_entities([one.entity for one in views], views, output)
        return
    holders = {one.name: one for one in client.ask(calls.queue()).holders}
    alike: dict[_Standing, list[str]] = defaultdict(list)
    for one in views:
        alike[_standing(one, holders.get(one.name))].append(one.name)
    rows = [
        (told.condition, told.power, told.jobs, str(len(names)), fold(names), printable(told.why))
        for told, names in sorted(alike.items(), key=lambda item: _place(item[0], item[1]))
    ]
    print_table(_HEADERS, rows, output, none="there is no node: haptera apply FILE declares some")


def _standing(view: EntityView, holder: HolderView | None) -> _Standing:
    power = view.observed.get(node.power.name)
    is_now = "unknown" if power is None else f"{power.value}{'' if power.known else '?'}"
    duty, reason = ("-", None) if holder is None else (holder.duty.value, holder.reason)
    return _Standing(Condition(view.condition), is_now, duty, view.why or reason or "")


def _place(told: _Standing, names: list[str]) -> tuple[int, int, _Standing]:
    return _ORDER.index(told.condition), -len(names), told
