"""A root that is lost for good, and its standby promoted, in simulated clusters and trees."""

import pytest

from haptera.core.state.limits import MS, S
from haptera.model.changes import Change, SetDesired, Undeclare, UnsetDesired
from haptera.model.entity import node_id
from haptera.testing.world import World
from tests.world.history import CALM
from tests.world.hunt import through
from tests.world.storm import Storm
from tests.world.test_room import BUDGETS, NODES, Upheaval, at_once, cluster, outages, system, why
from tests.world.test_tree_room import PARENTS

# How far behind its primary the standby was.
LAGS_S = (0.5, 3, 8)


class Succession(Storm):
    """A storm in which a standby that is up to date is promoted midway."""

    def unfold(self, steps: int) -> None:
        super().unfold(steps // 2)
        self.world.promote(self.world.parent.disk.copy())
        super().unfold(steps - steps // 2)


@pytest.mark.parametrize("seed", range(3))
def test_a_standby_that_is_promoted_in_a_storm_keeps_every_promise(seed: int) -> None:
    through(Succession(seed))


@pytest.mark.parametrize("seed", range(2))
def test_a_promotion_lets_no_more_systems_be_away_at_once_in_a_tree_than_the_budget_allows(
    seed: int,
) -> None:
    upheaval = Upheaval(seed, PARENTS)
    upheaval.unfold()
    copy = upheaval.world.parent.disk.copy()
    upheaval.world.run(upheaval.rng.choice(LAGS_S))
    upheaval.world.promote(copy)
    upheaval.unfold()
    calm = upheaval.calm_down()

    found = outages(upheaval.world)
    assert max(at_once(found)) <= BUDGETS["parent"]
    assert calm, [(name, why(upheaval.world, name)) for name in NODES]
    assert len(found) > len(NODES)


def test_what_a_standby_did_not_hear_of_is_over_before_it_disturbs_anything() -> None:
    world = cluster(1, CALM)
    assert world.settle(60)
    copy = world.parent.disk.copy()
    world.propose(switched_off("n01"))
    assert is_commanded(world, "n01")
    world.promote(copy)
    promoted_at = world.clock.now
    world.propose(switched_off("n02"))
    assert is_commanded(world, "n02")

    step = next(one for one in world.catalog.parts() if one.name == "switch_off")
    effect_ns = (step.within_ms + step.late_ms) * MS
    assert world.machines["n02"].commands[1].at >= promoted_at + effect_ns


def switched_off(name: str) -> tuple[Change, ...]:
    node = node_id(name)
    return (
        Undeclare(system(name)),
        SetDesired(node, "power", "off", "site"),
        UnsetDesired(node, "agent"),
    )


def is_commanded(world: World, name: str) -> bool:
    """Let time pass until the machine is told to switch off; it was told to switch on before."""
    told = world.machines[name].commands
    return world.clock.run_until(world.clock.now + 300 * S, lambda: len(told) == 2)
