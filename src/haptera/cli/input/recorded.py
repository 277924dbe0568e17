"""The record of a roll, as asked of the parent."""

import math

from haptera.cli.output.printing import say
from haptera.client import Client, calls
from haptera.controllers.roll.timeline import RollBegun, RollTimeline, begun, timeline
from haptera.kinds import roll, system
from haptera.model.entity import parse_entity
from haptera.model.walltime import utc_text_s
from haptera.rest.query import LIMIT_MAX
from haptera.runtime.clock import wall_s
from haptera.selectors.selector import fold_entities


def recorded_roll(client: Client, name: str) -> tuple[RollBegun, RollTimeline]:
    """The write that last began a roll, and its course since.

    Raises:
        HapteraError: none is recorded.
    """
    select = f"{roll.kind.name}:{name} or {system.kind.name}:*"
    changes = client.ask(calls.history(select, limit=LIMIT_MAX)).changes
    start = begun(name, changes)
    systems = fold_entities(map(parse_entity, start.systems))
    happened = client.ask(calls.happenings(systems, limit=LIMIT_MAX)).happened
    known_s = int(start.at_s)
    if len(happened) == LIMIT_MAX and happened[-1].at_s > known_s:
        known_s = math.ceil(happened[-1].at_s)
        text = f"what happened before {utc_text_s(known_s)} is not shown: the record is too long"
        say(text, err=True)
    known = client.ask(calls.past(known_s, systems)).entities
    course = timeline(start, known, changes, happened, known_s=known_s, now_s=wall_s())
    return start, course
