"""What is remembered, and for how long: by those who saw it, and not across a restart."""

from haptera.core.views.query import view
from haptera.model.answers.views import ObservedView
from haptera.testing.world import World
from tests.core.scenario import row_of
from tests.world.history import CALM, cluster, settled, web


def observed(world: World) -> dict[str, ObservedView]:
    return view(row_of(world.parent, web("n01")), world.clock.now).observed


def test_what_a_lost_node_was_known_to_do_is_remembered_with_its_age() -> None:
    world = settled(cluster(21, CALM), 30)
    world.network.cut = {frozenset(("parent", "n01"))}
    before = observed(world)["run"]
    world.run(60)

    run = observed(world)["run"]
    assert (before.value, before.known, run.value, run.known) == ("running", True, "running", False)
    assert run.age_ms == before.age_ms + 60_000


def test_a_parent_that_restarts_remembers_nothing_and_is_told_again_with_the_ages_there() -> None:
    world = settled(cluster(22, CALM), 30)
    world.run(30)
    world.network.cut = {frozenset(("parent", "n01"))}
    world.crash(world.parent)
    world.run(3)
    assert observed(world) == {}

    world.network.cut = set()
    world.run(5)
    run = observed(world)["run"]
    assert (run.value, run.known) == ("running", True)
    assert run.age_ms <= 20_000  # the agent's last look at it, and the time since it was told
