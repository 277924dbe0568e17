"""The cost of events, and how many of them one turn has time for."""

from collections import deque
from typing import Final

from haptera.model.events import Event, Heard, Listed, Noticed, Recalled

# Work, in moves that a search could try: any event, and each update or entity in it.
TAKING: Final = 100
TAKING_EACH: Final = 50
# A turn takes in no more than this beside its first event; the rest is left for the next one, which
# begins at once.
TAKEN_WORK_MAX: Final = 6_000


def taking(event: Event) -> int:
    """What taking this in costs, without what is decided after it, or checked."""
    match event:
        case Heard():
            return TAKING + TAKING_EACH * len(event.message.updates)
        case Listed():
            return TAKING + TAKING_EACH * len(event.versions)
        case Recalled():
            return TAKING + TAKING_EACH * len(event.entities)
        case Noticed():
            return TAKING + TAKING_EACH * len(event.nodes)
        case _:
            return TAKING


def admit(inbox: deque[Event]) -> list[Event]:
    """The next events that one turn takes in, in their order; the others stay."""
    taken: list[Event] = []
    work = 0
    while inbox and (not taken or work + taking(inbox[0]) <= TAKEN_WORK_MAX):
        work += taking(inbox[0])
        taken.append(inbox.popleft())
    return taken
