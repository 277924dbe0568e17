"""What people ask of the root for a node two levels below is done there, or refused."""

from haptera.core.safety.brake import BRAKE_CHILDREN_MIN
from haptera.core.state.limits import S
from haptera.core.state.row import EntityState
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import SetDesired
from haptera.model.effects import RequestRetry
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Asked, Released
from haptera.testing.world import World
from tests.world.history import CALM, web
from tests.world.test_tree import engine, tree

MODULE = EntityId("module", "service", "n01")


def at_root(world: World, entity: EntityId) -> tuple[Condition, str | None]:
    row = engine(world.parent).table.get(entity)
    assert row is not None
    return row.stance.condition, row.stance.why


def asked(world: World) -> list[tuple[str, EntityId]]:
    """Who asked the node's agent to try what again."""
    return [
        (one.process, one.what.entity) for one in world.tape if isinstance(one.what, RequestRetry)
    ]


def test_what_an_agent_gave_up_is_tried_again_when_the_root_is_asked() -> None:
    world = tree(1, CALM)
    assert world.settle(60)
    while not engine(world.agents["n01"]).supervisor.failed("service"):
        world.agents["n01"].lose_module("service")
        world.run(5)
    world.machines["n01"].services.clear()
    world.run(30)
    assert engine(world.agents["n01"]).supervisor.failed("service")

    world.parent.deliver([Asked(MODULE)])
    world.run(3)
    assert engine(world.agents["n01"]).supervisor.ready("service")
    assert world.settle(10)
    assert list(world.machines["n01"].services) == ["web"]


def test_what_is_asked_reaches_the_keeper_once_the_parents_speak_again() -> None:
    world = tree(2, CALM)
    assert world.settle(60)
    world.parent.deliver([Asked(web("n01"))])
    world.network.cut.add(frozenset(("t1", "parent")))
    world.run(2)
    assert asked(world) == []
    world.network.cut.clear()
    world.run(8)
    assert set(asked(world)) == {("m1", web("n01"))}
    assert engine(world.parent).requests.answer("t1").handed == ()


def test_a_brake_that_is_released_at_the_root_is_released_at_all_parents() -> None:
    world = tree(3, CALM)
    assert world.settle(60)
    for process in world.below.values():
        for number in range(BRAKE_CHILDREN_MIN + 1):
            gone = EntityState(node_id(f"x{number}"), KINDS["node"])
            engine(process).safety.lost(world.clock.now, gone)
    assert None not in braked(world).values()
    world.parent.deliver([Released()])
    world.run(5)
    assert braked(world) == dict.fromkeys(world.below)


def braked(world: World) -> dict[str, str | None]:
    now = world.clock.now
    return {name: engine(one).safety.braked(now) for name, one in world.below.items()}


def test_what_a_silent_parent_would_have_to_do_is_refused_and_does_not_wait_for_it() -> None:
    world = tree(4, CALM)
    assert world.settle(60)
    for name in ("t1", "t2"):
        world.below[name].crash()
    world.run(20)
    world.parent.deliver([Asked(web("n01"))])
    world.run(1)
    assert engine(world.parent).requests.out_of_reach("n01") == "t1"
    assert engine(world.parent).requests.out_of_reach("n05") is None
    for name in ("t1", "t2"):
        world.below[name].start()
    world.run(20)
    assert engine(world.parent).requests.out_of_reach("n01") is None
    assert asked(world) == []


def test_what_was_judged_by_other_desired_values_is_not_told_as_the_present_standing() -> None:
    world = tree(5, CALM)
    assert world.settle(60)
    ticket = world.propose([SetDesired(web("n01"), "port", 9000, "user:me")])
    assert world.clock.run_until(world.clock.now + S, lambda: ticket in world.parent.replies)
    assert at_root(world, node_id("n01"))[0] is Condition.CONVERGED
    assert at_root(world, web("n01")) == (Condition.WAITING, "m1 is to hear of it")
    assert world.settle(10)
