"""`haptera debug story`: the last decisions on an entity, and what came of each."""

from collections.abc import Iterator

import click

from haptera.cli.input import completing
from haptera.cli.input.naming import entity_named
from haptera.cli.main import the_client
from haptera.cli.output.live.redrawing import keep_showing, watch_option
from haptera.cli.output.printing import Format, entities_option, print_entities, say
from haptera.cli.output.tables import print_sentence
from haptera.cli.output.words import printable
from haptera.cli.verb import answers
from haptera.client import Client, calls
from haptera.model.answers.story import DecisionView, StoryView
from haptera.model.walltime import duration


@click.command()
@answers(StoryView)
@click.argument("entity", shell_complete=completing.entities)
@watch_option
@entities_option
@click.pass_context
def story(ctx: click.Context, entity: str, watch: bool, output: str) -> None:
    r"""Show the last decisions of the parent on ENTITY, and what came of each.

    A decision that is the same as the one before is not shown. The parent keeps the last decisions
    on all entities together, and forgets them when it restarts. The node's agent decides for
    itself: what it does is shown by haptera chain.

    \b
    Examples:
      haptera debug story rack1n1
      haptera debug story service:web@rack1n1 -o json
      haptera debug story --watch node:rack1n1
    """
    client, entity = the_client(ctx), entity_named(entity)
    if watch:
        events = calls.events(entity)
        keep_showing(client, events, lambda: _story(client, entity, output), output)
    else:
        _story(client, entity, output)


def _story(client: Client, entity: str, output: str) -> None:
    told = client.ask(calls.story(entity))
    if not Format(output).for_people:
        print_entities([entity], told, output)
        return
    for one in told.decisions:
        why = "" if one.why is None else f": {printable(one.why)}"
        ago = duration(one.ago_ms)
        print_sentence(f"{ago} ago  {one.condition}{why}", output)
        for label, line in _lines(one):
            print_sentence(printable(line), output, indent=f"  {label:<6} ")
    if not told.decisions:
        say("nothing was decided on it since the parent started")


def _lines(one: DecisionView) -> Iterator[tuple[str, str]]:
    """The lines of a decision: what had happened, what was decided, and its claims."""
    for name, value in one.seen.items():
        yield "seen", f"{name} is {value}" if value is not None else f"{name} is not known"
    yield from (("ended", line) for line in one.ended)
    yield "next", one.next
    yield from (("claims", line) for line in one.claims)
    yield from (("looks", line) for line in one.looks)
    if one.wake_in_ms is not None:
        yield "again", f"in {duration(max(0, one.wake_in_ms))}"
    if one.incomplete:
        yield "again", "as soon as there is time to plan"
