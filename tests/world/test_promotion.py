"""A root that is lost for good, and its standby promoted, in simulated clusters and trees."""

import pytest

from haptera.core.state.limits import MS, S
from haptera.model.changes import Change, SetDesired, Undeclare, UnsetDesired
from haptera.model.entity import node_id
from haptera.testing.world import RESTART_NS, DriftingWorld, World
from tests.world.history import CALM, settled
from tests.world.hunt import through
from tests.world.storm import LOST, Storm
from tests.world.test_room import BUDGETS, NODES, Upheaval, at_once, cluster, outages, system, why
from tests.world.test_tree_room import PARENTS

# How far behind its primary the standby was.
LAGS_S = (0, 0.5, 3, 8)


class Succession(Storm):
    """A storm in which a standby is promoted midway, which was up to date or lagged."""

    def unfold(self, steps: int) -> None:
        super().unfold(steps // 2)
        parent = self.world.parent
        copy, replicated = parent.disk.copy(), set(parent.replies)
        self._go_on_alone()
        # What was acknowledged since is the former parent's only, and may be lost.
        self.asked = [
            (ticket if ticket in replicated else LOST, asked, changes)
            for ticket, asked, changes in self.asked
        ]
        self.world.promote(copy)
        super().unfold(steps - steps // 2)

    def _go_on_alone(self) -> None:
        """What comes from now on the standby does not hear of."""
        self._rage(self.world.clock.now + int(self.rng.choice(LAGS_S) * S))

    def _rage(self, until: int) -> None:
        while self.world.clock.now < until:
            self._happen(self.rng.choice(list(self.world.machines)))
            self._run(self.rng.random())

    def calm_down(self) -> bool:
        """Nodes whose last enrolment the standby did not hear of are booted again by hand."""
        known = self.world.parent.disk.incarnations
        for name in list(self.world.agents):
            if known.get(name) != self.world.incarnations[name]:
                self.world.machines[name].cut()
        return super().calm_down()


class Dethroned(Succession):
    """A storm in which the parent loses its lease, and its standby takes over when that is free.

    Each machine's clock is its own. Nothing kills the parent meanwhile, for it would come back.
    """

    sort = DriftingWorld

    def _go_on_alone(self) -> None:
        self.happenings = [one for one in self.happenings if one != self._kill_parent]
        self._run(RESTART_NS / S)
        ends_at = self._lose_lease()
        self._rage(ends_at - S)
        self.world.clock.run_until(ends_at)


# In 8, 37 and 41 a switch was set again while it was being set.
@pytest.mark.parametrize("seed", [0, 8, 37, 41])
def test_a_standby_that_is_promoted_in_a_storm_keeps_every_promise(seed: int) -> None:
    through(Succession(seed))


# In 6, a step of the former parent is under way then, dated by the clock of another machine.
@pytest.mark.parametrize("seed", [0, 1, 2, 6])
def test_a_parent_that_loses_its_lease_has_ended_before_its_standby_is_promoted(seed: int) -> None:
    through(Dethroned(seed))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(50))
def test_in_many_storms_who_loses_its_lease_has_ended_before_another_acts(seed: int) -> None:
    through(Dethroned(100 + seed))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(50))
def test_in_many_storms_a_promotion_keeps_every_promise(seed: int) -> None:
    through(Succession(100 + seed))


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
    world = settled(cluster(1, CALM), 60)
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


def test_a_switch_is_not_set_again_while_the_former_parents_command_may_be_on_its_way() -> None:
    world = settled(cluster(1, CALM), 60)
    world.propose(switched_off("n01"))
    assert is_commanded(world, "n01")
    world.run(20)
    copy, told = world.parent.disk.copy(), world.machines["n01"].commands
    switched_on = [SetDesired(node_id("n01"), "power", "on", "site")]
    world.propose(switched_on)
    assert world.clock.run_until(world.clock.now + 300 * S, lambda: len(told) == 3)
    world.promote(copy)
    world.propose(switched_on)
    assert world.settle(60)

    assert [one.power for one in told] == ["on", "off", "on"]


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
