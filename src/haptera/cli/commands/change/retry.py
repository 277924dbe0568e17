"""`haptera retry`: an entity tried again at once, or many."""

from collections.abc import Iterable, Iterator

import click

from haptera.cli.input import completing
from haptera.cli.input.selected import selected
from haptera.cli.input.terms import why_option
from haptera.cli.main import the_client
from haptera.cli.output.printing import Format, entities_option, print_entities, say
from haptera.cli.output.words import printable
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.model.answers.views import Condition, EntityView
from haptera.model.entity import parse_entity
from haptera.selectors.selector import fold_entities

_HELD_UP = (Condition.WAITING, Condition.STUCK)


@click.command()
@answers(list[str])
@unwatched("it runs once; `haptera status --watch` shows the result")
@click.argument("selection", metavar="ENTITY|SELECTOR", shell_complete=completing.selectors)
@why_option
@entities_option
@click.pass_context
def retry(ctx: click.Context, selection: str, why: str | None, output: str) -> None:
    r"""Retry ENTITY now, without waiting for its back-off or cool-down.

    What else it waits for (a permit, room in a budget, a freeze, another side) it goes on waiting
    for; the answer says so.

    With a SELECTOR (rack1n[1-4], 'condition=stuck'), everything it matches that is waiting or
    stuck.

    \b
    Examples:
      haptera retry node:rack1n1 -m "new fans"
      haptera retry -o name 'condition=stuck'
    """
    client = the_client(ctx)
    found = selected(client, selection).entities
    tried = [one.entity for one in found if one.entity == selection or one.condition in _HELD_UP]
    if len(tried) > 1:
        from haptera.cli.input.many import ask_all  # only here: it brings asyncio

        ask_all(client.access, (calls.retry(one, why=why) for one in tried))
    elif tried:
        client.ask(calls.retry(tried[0], why=why))
    if not Format(output).for_people:
        print_entities(tried, tried, output)
    elif tried:
        verb = "is" if len(tried) == 1 else "are"
        say(f"{fold_entities(map(parse_entity, tried))} {verb} retried now")
        for line in _stays(one for one in found if one.entity in tried):
            say(line)
    else:
        say("nothing to retry: no selected entity is waiting or stuck")


def _stays(tried: Iterable[EntityView]) -> Iterator[str]:
    """What these wait for and a retry does not bring: it ends back-offs and cool-downs only."""
    waiting: dict[str, list[EntityView]] = {}
    for one in tried:
        if one.condition is Condition.WAITING and one.unblock is not None:
            waiting.setdefault(one.unblock, []).append(one)
    for needs, some in waiting.items():
        names = fold_entities(parse_entity(one.entity) for one in some)
        yield f"a retry does not bring what {names} waits for: {printable(needs)}"
