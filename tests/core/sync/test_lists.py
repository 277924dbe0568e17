"""What differs though the latest version is held is told again: alone, where that can be asked."""

import pytest

from haptera.core.state.limits import RECALLED_MAX, S
from haptera.core.state.turn import Turn
from haptera.core.sync.lists import LISTS_MAX
from haptera.core.sync.merge import ObservedIn
from haptera.model.changes import Declare, Desired
from haptera.model.effects import FetchSchema
from haptera.model.entity import EntityId
from haptera.model.events import Heard, Listed
from haptera.model.messages import DesiredUpdate, Mark, Message
from tests.core.scenario import row_of
from tests.core.sync.test_links import NODE, PARENTS, Pair

MANY = [EntityId("service", f"web{number}", NODE) for number in range(200)]


def pair_of(services: list[EntityId], mute: float) -> Pair:
    """Both sides hold all there is, and have told each other so."""
    pair = Pair(1, loss=0.0, mute=mute)
    for service in services:
        pair.write(Declare(service, {}, "site"))
    pair.run(pair.now + 3 * S)
    for service in services:
        pair.see(service, "running")
    pair.run(pair.now + 3 * S)
    assert pair.agent.desired_layer() == pair.parent.desired_layer()
    assert pair.agent.observed_layer() == pair.parent.observed_layer()
    pair.lists, pair.told = 0, set()
    return pair


def spoil_desired(pair: Pair) -> None:
    """A bit rots on the agent: it holds one service in an earlier version than it should."""
    row = row_of(pair.agent, MANY[7])
    row.desired.revision, row.link.confirmed, row.desired.values = (
        1,
        1,
        {"port": Desired(9, "parent")},
    )


def spoil_observed(pair: Pair) -> None:
    row = row_of(pair.parent, MANY[7])
    row.link.heard = 1
    row.report.facts = {}


@pytest.mark.parametrize("spoil", [spoil_desired, spoil_observed])
def test_of_many_services_the_one_that_differs_alone_is_told_after_one_list(spoil) -> None:
    pair = pair_of(MANY, mute=0.0)
    spoil(pair)
    assert (
        pair.agent.desired_layer() != pair.parent.desired_layer()
        or pair.agent.observed_layer() != pair.parent.observed_layer()
    )
    pair.run(pair.now + 10 * S)

    assert pair.agent.desired_layer() == pair.parent.desired_layer()
    assert pair.agent.observed_layer() == pair.parent.observed_layer()
    assert (pair.lists, pair.told) == (1, {MANY[7]})


@pytest.mark.parametrize("spoil", [spoil_desired, spoil_observed])
def test_where_nobody_can_be_asked_all_is_told_again(spoil) -> None:
    pair = pair_of(MANY, mute=1.0)
    spoil(pair)
    pair.run(pair.now + 10 * S)

    assert pair.agent.desired_layer() == pair.parent.desired_layer()
    assert pair.agent.observed_layer() == pair.parent.observed_layer()
    assert pair.lists == 1
    assert pair.told >= set(MANY)


def test_what_is_held_and_not_listed_goes() -> None:
    pair = pair_of(MANY[:3], mute=0.0)
    row = pair.agent.table.make(EntityId("policy", "stale", None))
    row.desired.revision = row.link.confirmed = 2
    pair.run(pair.now + 10 * S)

    assert pair.agent.desired_layer() == pair.parent.desired_layer()
    assert (pair.lists, pair.told) == (1, set())


def test_a_list_of_another_process_or_that_nobody_waits_for_changes_nothing() -> None:
    pair = pair_of(MANY[:3], mute=0.0)
    links, turn = pair.parent.links, Turn(pair.now)
    before = links.listed(NODE), pair.parent.observed_layer()
    links.take_list(turn, Listed(NODE, 1, Mark(0, 99, 1), ()))
    spoil_first(pair)
    pair.run(pair.now + S // 2)
    links.take_list(turn, Listed(NODE, 99, Mark(0, 99, 1), ()))

    assert (links.listed(NODE), pair.parent.observed_layer()) == before
    assert turn.effects == []


def spoil_first(pair: Pair) -> None:
    row_of(pair.parent, MANY[0]).link.heard -= 1


def test_what_changed_after_the_list_was_made_is_none_of_its_business() -> None:
    pair = pair_of(MANY[:3], mute=0.0)
    incoming = ObservedIn(pair.parent.table, PARENTS)
    versions = {row.id: row.link.heard for row in pair.parent.table.on(NODE)}
    later = max(versions.values())
    listed = tuple((one, 1) for one in MANY[:2])

    assert incoming.reconcile(Turn(0), NODE, later - 1, listed) == []
    held = {row.id: row.link.heard for row in pair.parent.table.on(NODE) if row.link.heard}
    assert held == {one: versions[one] for one in MANY[:3]}


def test_so_many_differences_that_all_is_as_cheap_have_all_told_again() -> None:
    pair = pair_of(MANY[:3], mute=0.0)
    spoil_first(pair)
    pair.run(pair.now + 1)
    listed = tuple((EntityId("service", f"s{one}", NODE), 9) for one in range(RECALLED_MAX + 1))
    turn = Turn(pair.now)
    row_of(pair.agent, MANY[0]).link.confirmed -= 1
    pair.run(pair.now + S // 4 + S // 2)
    pair.agent.links.take_list(turn, Listed("parent", 1, Mark(5, 99, 1), listed))

    assert turn.effects == []
    pair.run(pair.now + 10 * S)
    assert pair.agent.desired_layer() == pair.parent.desired_layer()
    assert LISTS_MAX > 1


def test_what_a_parent_with_more_kinds_wants_is_left_alone() -> None:
    pair = pair_of(MANY[:1], mute=0.0)
    before = pair.agent.desired_layer()
    update = DesiredUpdate(EntityId("rack", "r1", NODE), 99, {"door": "shut"}, {})
    message = Message(1, 0, 2, Mark(5, 99, 1), Mark(), updates=(update,))
    turn = Turn(pair.now)
    pair.agent.links.heard(turn, Heard("parent", 1, message, pair.now))

    assert pair.agent.desired_layer() == before
    assert FetchSchema("parent") in turn.effects


def test_values_that_only_the_parents_kinds_have_are_left_out() -> None:
    pair = pair_of(MANY[:1], mute=0.0)
    values: dict[str, str | int] = {"run": "paused", "port": 80, "colour": "red"}
    message = Message(
        1, 0, 2, Mark(5, 99, 1), Mark(), updates=(DesiredUpdate(MANY[0], 99, values, {}),)
    )
    pair.agent.links.heard(Turn(pair.now), Heard("parent", 1, message, pair.now))

    assert pair.agent.desired_layer()[MANY[0]] == ({"port": 80}, {})
