"""What people ask of the root for a node two levels below is done there, or refused."""

from collections.abc import Callable

import pytest

from haptera.core.safety.brake import BRAKE_CHILDREN_MIN
from haptera.core.state.limits import S
from haptera.core.state.row import EntityState
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import SetDesired
from haptera.model.effects import RequestRetry
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Asked, HandedDown, NumberedRequest, Released, ToldFromAbove
from haptera.testing.tape import TapeEntry
from haptera.testing.world import World
from tests.core.scenario import standing
from tests.world.history import CALM, settled, web
from tests.world.test_tree import engine, tree

MODULE = EntityId("module", "service", "n01")


def asked(world: World) -> list[tuple[str, EntityId]]:
    """Who asked the node's agent to try what again."""
    return [
        (one.process, one.what.entity) for one in world.tape if isinstance(one.what, RequestRetry)
    ]


def test_what_an_agent_gave_up_is_tried_again_when_the_root_is_asked() -> None:
    world = settled(tree(1, CALM), 60)
    while not engine(world.agents["n01"]).hands.supervisor.failed("service"):
        world.agents["n01"].lose_module("service")
        world.run(5)
    world.machines["n01"].services.clear()
    world.run(30)
    assert engine(world.agents["n01"]).hands.supervisor.failed("service")

    world.parent.deliver([Asked(MODULE)])
    world.run(3)
    assert engine(world.agents["n01"]).hands.supervisor.ready("service")
    assert world.settle(10)
    assert list(world.machines["n01"].services) == ["web"]


def test_what_is_asked_reaches_the_keeper_once_the_parents_speak_again() -> None:
    world = settled(tree(2, CALM), 60)
    world.parent.deliver([Asked(web("n01"))])
    world.network.cut.add(frozenset(("t1", "parent")))
    world.run(2)
    assert asked(world) == []
    world.network.cut.clear()
    world.run(8)
    assert set(asked(world)) == {("m1", web("n01"))}
    assert at_rest(world)


def cut(world: World, *pair: str) -> None:
    world.network.cut.add(frozenset(pair))


def test_what_a_parent_in_the_middle_took_and_died_with_is_asked_again() -> None:
    world = settled(tree(6, CALM), 60)
    for above in ("t1", "t2"):
        cut(world, "m1", above)
    world.parent.deliver([Asked(web("n01"))])
    world.run(2)
    assert {one.process for one in handed(world)} == {"t1"}
    world.crash(world.below["t1"])
    world.run(1)
    world.network.cut.clear()
    world.run(8)
    assert set(asked(world)) == {("m1", web("n01"))}
    assert at_rest(world)


def test_what_a_parent_in_the_middle_took_goes_by_another_one_where_it_stays_away() -> None:
    world = settled(tree(7, CALM), 60)
    cut(world, "m1", "t1")
    world.parent.deliver([Asked(web("n01"))])
    world.run(2)
    world.below["t1"].crash()
    world.run(10)
    assert set(asked(world)) == {("m1", web("n01"))}, "by t2"
    assert at_rest(world)


def test_what_the_keeper_did_not_hear_is_done_by_the_one_that_the_node_moves_to() -> None:
    world = settled(tree(8, CALM), 60)
    cut(world, "m1", "t1")
    world.parent.deliver([Asked(web("n01"))])
    world.run(2)
    world.below["m1"].crash()
    world.run(15)
    assert set(asked(world)) == {("m2", web("n01"))}
    assert at_rest(world)


# What people ask, and where it is done.
ACCEPTED = {
    Asked(web("n01")): {"t1", "m1"},
    Released("n03"): {"t2", "m2"},
    Released(): {"t1", "t2", "m1", "m2"},
}


def die(world: World) -> None:
    world.crash(world.parent)


def be_succeeded(world: World) -> None:
    world.promote(world.parent.disk.copy())


@pytest.mark.parametrize("end", [die, be_succeeded])
@pytest.mark.parametrize("request_", ACCEPTED)
def test_what_a_root_accepted_and_died_with_is_done_by_the_next_one(
    request_: HandedDown, end: Callable[[World], None]
) -> None:
    world = settled(tree(11, CALM), 60)
    world.parent.ask(request_)
    end(world)
    world.run(8)
    told = {(one.process, down.request) for one in handed(world) for down in handed_by(one)}
    assert told == {(parent, request_) for parent in ACCEPTED[request_]}
    assert at_rest(world)


def test_what_a_root_accepted_of_its_own_node_is_done_by_the_next_one() -> None:
    world = settled(tree(12, CALM), 60)
    world.parent.ask(Asked(web("n05")))
    before = len(world.tape)
    world.crash(world.parent)
    world.run(8)
    del world.tape[:before]
    assert asked(world) == [("parent", web("n05"))]
    assert at_rest(world)


def test_what_a_root_accepted_is_not_done_once_it_was_away_for_long() -> None:
    world = settled(tree(13, CALM), 60)
    for request in ACCEPTED:
        world.parent.ask(request)
    world.parent.crash()
    world.run(15)
    world.parent.start()
    world.run(8)
    assert (asked(world), handed(world)) == ([], [])


def test_what_nobody_heeded_for_long_is_not_done_when_all_are_there_again() -> None:
    world = settled(tree(9, CALM), 60)
    for above in ("t1", "t2"):
        cut(world, "m1", above)
    world.parent.deliver([Asked(web("n01"))])
    world.run(15)
    world.network.cut.clear()
    world.run(10)
    assert asked(world) == []
    assert at_rest(world)


def test_what_is_asked_of_a_node_that_nobody_reports_on_is_refused() -> None:
    world = settled(tree(10, CALM), 60)
    for above in ("t1", "t2"):
        cut(world, "m1", above)
    assert engine(world.parent).requests.out_of_reach("n01") is None
    world.run(8)
    assert engine(world.parent).requests.out_of_reach("n01") == "m1"
    world.network.cut.clear()
    world.run(3)
    assert engine(world.parent).requests.out_of_reach("n01") is None


def handed(world: World) -> list[TapeEntry]:
    """Where requests arrived from the parent above."""
    answers = (one for one in world.tape if isinstance(one.what, ToldFromAbove))
    return [one for one in answers if one.what.answer.handed]


def handed_by(one: TapeEntry) -> tuple[NumberedRequest, ...]:
    assert isinstance(one.what, ToldFromAbove)
    return one.what.answer.handed


def at_rest(world: World) -> bool:
    """Whether nobody waits any more for a request to be heeded."""
    parents = (world.parent, *world.below.values())
    below = [one.engine.neighbours.down.below for one in parents if one.engine]
    return not any(one.standing(world.clock.now) for one in below)


def test_a_brake_that_is_released_at_the_root_is_released_at_all_parents() -> None:
    world = settled(tree(3, CALM), 60)
    for process in world.below.values():
        for number in range(BRAKE_CHILDREN_MIN + 1):
            gone = EntityState(node_id(f"x{number}"), KINDS["node"])
            engine(process).safety.unrest.lost(world.clock.now, gone)
    assert None not in braked(world).values()
    world.parent.deliver([Released()])
    world.run(5)
    assert braked(world) == dict.fromkeys(world.below)


def braked(world: World) -> dict[str, str | None]:
    now = world.clock.now
    return {name: engine(one).safety.unrest.braked(now) for name, one in world.below.items()}


def test_what_a_silent_parent_would_have_to_do_is_refused() -> None:
    world = settled(tree(4, CALM), 60)
    for name in ("t1", "t2"):
        world.below[name].crash()
    world.run(20)
    assert engine(world.parent).requests.out_of_reach("n01") == "t1"
    assert engine(world.parent).requests.out_of_reach("n05") is None
    for name in ("t1", "t2"):
        world.below[name].start()
    world.run(20)
    assert engine(world.parent).requests.out_of_reach("n01") is None


def test_what_was_judged_by_other_desired_values_is_not_told_as_the_present_standing() -> None:
    world = settled(tree(5, CALM), 60)
    ticket = world.propose([SetDesired(web("n01"), "port", 9000, "user:me")])
    assert world.clock.run_until(world.clock.now + S, lambda: ticket in world.parent.replies)
    assert standing(world.parent, node_id("n01"))[0] is Condition.CONVERGED
    assert standing(world.parent, web("n01")) == (Condition.WAITING, "m1 is to hear of it")
    assert world.settle(10)
