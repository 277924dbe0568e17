"""A parent that starts asks its nodes what they know before their hellos, and not all at once."""

from dataclasses import replace

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import MS, S
from haptera.core.state.side import Side
from haptera.kinds import KINDS
from haptera.model.changes import Stored, StoredEntity
from haptera.model.effects import Tell
from haptera.model.entity import node_id
from haptera.model.events import Alive, Event, Ticked
from tests.core.scenario import ATTRIBUTES, BMC, SIDE

NAMES = [f"n{number:02}" for number in range(1, 41)]
GREETS = replace(SIDE, greet_each_ns=MS)


def started(side: Side) -> Engine:
    nodes = [StoredEntity(node_id(name), ATTRIBUTES, "site", {}, 3) for name in NAMES]
    return Engine(
        side, Catalog(KINDS, [BMC]), Stored(7, 3, nodes, [], dict.fromkeys(NAMES, 1)), 0, S
    )


def asked(engine: Engine, until: int, *events: Event) -> list[tuple[int, str]]:
    """Which nodes are asked for a hello until then, and when."""
    found = []
    batch: list[Event] = [Ticked(), *events]
    now = S
    while now <= until:
        effects = engine.handle(batch, now)
        engine.check()
        found += [
            (now - S, one.peer) for one in effects if isinstance(one, Tell) and one.message.probe
        ]
        batch, now = [Ticked()], engine.deadline() or until + 1
    return found


def test_all_of_its_nodes_are_asked_in_the_time_that_their_answers_take() -> None:
    found = asked(started(GREETS), S + len(NAMES) * MS)

    assert sorted(name for _, name in found) == NAMES
    assert len({at for at, _ in found}) > len(NAMES) // 2


def test_so_many_that_they_would_not_be_done_within_a_hello_are_spread_over_it() -> None:
    found = asked(started(replace(GREETS, greet_each_ns=S)), S + SIDE.hello_ns)

    assert {name for _, name in found} == set(NAMES)
    assert max(at for at, _ in found) > SIDE.hello_ns // 2


def test_who_was_heard_already_is_not_asked() -> None:
    found = asked(started(GREETS), S + len(NAMES) * MS, Alive((NAMES[0],), S))

    assert sorted(name for _, name in found) == NAMES[1:]


def test_a_side_that_does_not_ask_waits_for_hellos() -> None:
    assert asked(started(SIDE), S + len(NAMES) * MS) == []
