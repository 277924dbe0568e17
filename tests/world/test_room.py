"""Simulated clusters whose agents replace systems: never more at once than the budget allows."""

from collections.abc import Iterator, Mapping

import pytest

from haptera.core.state.limits import S
from haptera.core.state.side import PARENT
from haptera.model.changes import Change, Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.modules import load
from haptera.modules.system.module import LATE_S
from haptera.selectors.selector import ALL
from haptera.testing.machine import Outage
from haptera.testing.network import NetworkFaults
from haptera.testing.world import World
from haptera.testing.world_process import WorldProcess
from tests.core.scenario import row_of
from tests.world.history import CALM, NODES, ROUGH, settled

ACTS = 25
BUDGETS = {"node": 1, "group": 4, "parent": 2}
ROOT_ALONE: Mapping[str, tuple[str, ...]] = {}
CALM_S, SETTLE_S = 100, 700
# A flip may take effect for so long after its call: its own time, and what may come late.
FLIP_EFFECT_S = 60 + LATE_S


def system(node: str) -> EntityId:
    return EntityId("system", "compute", node)


def cluster(
    seed: int, faults: NetworkFaults, parents: Mapping[str, tuple[str, ...]] = ROOT_ALONE
) -> World:
    """Nodes that should be on, each with a system, of which two may be away at once.

    `parents` are the lists of parents of nodes, and of parents below the root.
    """
    manifests = [load(one).manifest() for one in ("labnode", "system")]
    world = World(seed, NODES, manifests, faults, parents=parents)
    for name in sorted({one for listed in parents.values() for one in listed}):
        world.propose((Declare(node_id(name), _listed(parents, name), "site"),))
    for per, at_once in BUDGETS.items():
        budget = EntityId("budget", per, None)
        world.propose(
            (
                Declare(budget, {}, "site"),
                SetDesired(budget, "per", per, "site"),
                SetDesired(budget, "at_once", at_once, "site"),
            )
        )
    for name in NODES:
        world.propose(
            (
                Declare(
                    node_id(name),
                    {"platform": "labnode", "jobs": "none", **_listed(parents, name)},
                    "site",
                ),
                SetDesired(node_id(name), "power", "on", "site"),
                SetDesired(node_id(name), "agent", "up", "site"),
                Declare(system(name), {}, "site"),
                SetDesired(system(name), "run", "running", "site"),
                *image(name, 1),
            )
        )
    world.run(1)
    return world


def _listed(parents: Mapping[str, tuple[str, ...]], name: str) -> dict[str, str]:
    return {"parents": ", ".join(parents[name])} if name in parents else {}


def image(node: str, number: int) -> tuple[Change, ...]:
    return (SetDesired(system(node), "image", f"image-{number}", "site"),)


def outages(world: World) -> list[Outage]:
    return [one for machine in world.machines.values() for one in machine.outages]


def at_once(found: list[Outage]) -> Iterator[int]:
    """How many were away as each of them began."""
    for one in found:
        yield sum(other.began_at <= one.began_at < other.ended_at for other in found)


def why(world: World, node: str) -> str | None:
    """What the agent says of its system."""
    return row_of(world.agents[node], system(node)).stance.why


def test_as_many_systems_are_replaced_at_once_as_the_budget_allows_and_no_more() -> None:
    world = settled(cluster(1, CALM), 60)
    for name in NODES:
        world.propose(image(name, 2))
    world.run(1)
    assert world.settle(60)

    assert sorted(one.system for one in outages(world)) == [str(system(name)) for name in NODES]
    assert max(at_once(outages(world))) == BUDGETS["parent"]


def test_an_agent_that_is_cut_off_replaces_nothing_and_says_why() -> None:
    world = settled(cluster(2, CALM), 60)
    freeze = EntityId("freeze", "until-the-cut", None)
    until_s = world.wall_s() + 20
    world.propose(
        (
            Declare(freeze, {}, "site"),
            SetDesired(freeze, "of", ALL, "site"),
            SetDesired(freeze, "until_s", until_s, "site"),
        )
    )
    world.propose(image("n01", 2))
    world.run(10)
    world.network.cut.add(frozenset(("parent", "n01")))
    world.run(300)

    assert outages(world) == []
    assert why(world, "n01") == (
        "system.flip waits: the parent is silent, and only it knows what is disrupted elsewhere"
    )
    world.network.cut.clear()
    assert world.settle(120)
    assert [one.system for one in outages(world)] == [str(system("n01"))]


def test_the_place_of_a_lost_agent_is_lent_again_once_its_step_can_take_no_effect() -> None:
    world = settled(cluster(3, CALM), 60)
    for name in ("n01", "n02"):
        world.propose(image(name, 2))
    assert world.clock.run_until(world.clock.now + 10 * S, lambda: len(outages(world)) == 2)
    for name in ("n01", "n02"):
        world.network.cut.add(frozenset(("parent", name)))
    for name in ("n03", "n04"):
        world.propose(image(name, 2))
    world.run(FLIP_EFFECT_S)
    assert len(outages(world)) == 2

    world.run(300)
    assert {one.system for one in outages(world)} == {str(system(name)) for name in NODES}


def test_a_parent_that_was_just_started_lends_nothing_while_others_may_use_what_it_lent() -> None:
    world = settled(cluster(4, CALM), 60)
    for name in ("n01", "n02"):
        world.propose(image(name, 2))
    assert world.clock.run_until(world.clock.now + 10 * S, lambda: len(outages(world)) == 2)
    for name in ("n01", "n02"):
        world.network.cut.add(frozenset(("parent", name)))
    world.crash(world.parent)
    world.run(5)
    for name in ("n03", "n04"):
        world.propose(image(name, 2))
    world.run(50)

    assert len(outages(world)) == 2
    assert why(world, "n03") in [
        f"system.flip waits: this parent was just started, and {one} has not reported what it does"
        for one in ("n01", "n02")
    ]
    world.run(30)
    assert len(outages(world)) == len(NODES)


class Upheaval:
    """Images change, processes die, links and power are cut: by seed."""

    def __init__(self, seed: int, parents: Mapping[str, tuple[str, ...]] = ROOT_ALONE) -> None:
        self.world = cluster(seed, ROUGH, parents)
        self.rng = self.world.clock.rng("upheaval")
        self.world.settle(60)

    def unfold(self) -> None:
        for number in range(2, ACTS):
            self._happen(self.rng.choice(NODES), number)
            self.world.run(self.rng.random() * self.rng.choice((0.3, 3, 8)))

    def _happen(self, name: str, number: int) -> None:
        world, agent = self.world, self.world.agents.get(name)
        match self.rng.randrange(10):
            case 0 | 1 | 2 | 3 if world.parent.engine is not None:
                for one in NODES:
                    world.propose(image(one, number))
            case 4 if (parent := self._parent()).engine is not None:
                world.crash(parent)
            case 5 if agent is not None and agent.engine is not None:
                world.crash(agent)
            case 6 if agent is not None:
                agent.pause(self.rng.choice((1, 3, 10)))
            case 7:
                pair = self._link(name)
                world.network.cut.add(pair)
                delay_ns = int(self.rng.random() * 20 * S)
                world.clock.after(delay_ns, world.network.cut.discard, pair)
            case 8:
                self._parent().pause(self.rng.choice((1, 3, 10)))
            case 9 if self.rng.random() < 0.3:
                world.machines[name].cut()
            case _:
                pass

    def _parent(self) -> WorldProcess:
        """One of any level."""
        below = list(self.world.below.values())
        return self.rng.choice([self.world.parent, *below]) if below else self.world.parent

    def _link(self, name: str) -> frozenset[str]:
        """Between a node and a parent that it may have, or between that one and one above it."""
        parents = self.world.parents_of(name)
        if parents == (PARENT,):
            return frozenset((PARENT, name))
        parent = self.rng.choice(parents)
        above = self.rng.choice(self.world.parents_of(parent))
        return self.rng.choice((frozenset((parent, name)), frozenset((parent, above))))

    def calm_down(self) -> bool:
        """No fault, and another image: tells whether all come to run it."""
        self.world.network.faults, self.world.network.cut = CALM, set()
        self.world.run(CALM_S)
        for name in NODES:
            self.world.propose(image(name, ACTS))
        self.world.run(1)
        return self.world.settle(SETTLE_S)


@pytest.mark.parametrize("seed", range(1, 5))
def test_whatever_breaks_no_more_systems_are_away_at_once_than_the_budget_allows(seed: int) -> None:
    upheaval = Upheaval(seed)
    upheaval.unfold()
    calm = upheaval.calm_down()

    found = outages(upheaval.world)
    assert max(at_once(found)) <= BUDGETS["parent"]
    assert calm, [(name, why(upheaval.world, name)) for name in NODES]
    assert len(found) > len(NODES)
