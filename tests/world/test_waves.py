"""A service that is changed everywhere: it goes in waves, and stops where it does not come back."""

from haptera.core.state.limits import S
from haptera.model.changes import SetDesired, UnsetDesired
from haptera.model.entity import EntityId
from haptera.testing.world import World
from tests.world.history import CALM, NODES, cluster, settled, web


def changed(world: World, **values: str | int) -> list[set[EntityId]]:
    """What is under way or away at once, from then on: each set as it comes to be."""
    world.propose(
        SetDesired(web(node), name, value, "site")
        for node in NODES
        for name, value in values.items()
    )
    assert world.clock.run_until(world.clock.now + S, lambda: not world.converged())
    seen: list[set[EntityId]] = []

    def look() -> bool:
        now = {web(node) for node in NODES if is_away(world, node)}
        if not seen or seen[-1] != now:
            seen.append(now)
        return world.converged()

    world.clock.run_until(world.clock.now + 120 * S, look)
    return seen


def is_away(world: World, node: str) -> bool:
    """Whether its service is being replaced, or does not run."""
    engine = world.agents[node].engine
    row = None if engine is None else engine.table.get(web(node))
    stepping = None if row is None else row.work.stepping
    return stepping is not None or "web" not in world.machines[node].services


def test_a_change_of_a_service_restarts_it_on_one_node_after_the_other() -> None:
    world = settled(cluster(5, CALM), 30)
    seen = changed(world, port=8080)
    assert world.converged()
    assert set().union(*seen) == {web(node) for node in NODES}
    assert max(map(len, seen)) == 1


def test_a_service_may_say_how_many_of_it_may_be_away_at_once() -> None:
    world = settled(cluster(5, CALM), 30)
    assert max(map(len, changed(world, max_unavailable="50%", port=8080))) == 2
    assert max(map(len, changed(world, max_unavailable="4", port=8081))) == 4


def test_all_are_stopped_at_once_where_that_is_desired() -> None:
    world = settled(cluster(5, CALM), 30)
    assert max(map(len, changed(world, run="stopped"))) == len(NODES)


def test_where_one_does_not_come_back_the_others_stay_until_it_does() -> None:
    world = settled(cluster(5, CALM), 30)
    for machine in world.machines.values():
        machine.breaks = {"web"}
    world.propose(SetDesired(web(node), "port", 8080, "site") for node in NODES)
    world.run(60)
    (broken,) = [node for node in NODES if "web" not in world.machines[node].services]
    assert {why(world, node) for node in NODES if node != broken} == {
        f"service.replace waits: the budget of service web allows 1 at once: service:web@{broken}"
    }
    for machine in world.machines.values():
        machine.breaks = set()
    world.propose(UnsetDesired(web(node), "port") for node in NODES)
    assert world.settle(60)


def why(world: World, node: str) -> str | None:
    engine = world.parent.engine
    row = None if engine is None else engine.table.get(web(node))
    return None if row is None else row.stance.why
