"""A parent and an agent of two versions: what both plan alike goes on, and the rest waits."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from haptera.core.engine import Engine
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import SetDesired
from haptera.model.declared.schema import Attribute, Kind
from haptera.model.parts import Manifest
from haptera.modules import load
from haptera.testing.world import World
from haptera.testing.world_process import WorldProcess
from tests.core.scenario import standing
from tests.world.history import CALM, cluster, settled, web

LABNODE, SERVICE = (load(name).manifest() for name in ("labnode", "service"))


def otherwise(manifest: Manifest) -> Manifest:
    return replace(manifest, steps=tuple(replace(one, cost=2) for one in manifest.steps))


def grown(kind: str) -> Mapping[str, Kind]:
    """All kinds, one of which has something more."""
    return {**KINDS, kind: replace(KINDS[kind], attributes=(Attribute(kind, "later"),))}


def parent(world: World) -> WorldProcess:
    return world.parent


def agent(world: World) -> WorldProcess:
    return world.agents["n01"]


Process = Callable[[World], WorldProcess]


def renewed(seed: int, side: Process, kinds: Mapping[str, Kind], *manifests: Manifest) -> World:
    """A cluster at rest, one of whose processes was started anew, of another version."""
    world = settled(cluster(seed, CALM), 30)
    own = world.catalog.kinds, (LABNODE, SERVICE)
    world.install(kinds, manifests)
    world.crash(side(world))
    world.run(3)
    world.install(*own)
    assert not engine(world.parent).neighbours.links.agrees("n01")
    assert not engine(world.agents["n01"]).neighbours.links.agrees("parent")
    return world


def engine(process: WorldProcess) -> Engine:
    assert process.engine is not None
    return process.engine


def stance(process: WorldProcess) -> tuple[Condition, str | None]:
    return standing(process, web("n01"))


@pytest.mark.parametrize("side", [parent, agent])
def test_where_both_sides_plan_services_alike_these_go_on(side: Process) -> None:
    world = renewed(8, side, grown("image"), LABNODE, SERVICE)
    before = world.machines["n01"].services["web"]
    world.machines["n01"].services.clear()
    world.run(10)
    assert world.machines["n01"].services == {"web": before}
    world.propose([SetDesired(web("n01"), "port", 8080, "site")])
    world.run(3)
    assert world.settle(20)
    assert world.machines["n01"].services.keys() == {"web"}
    assert world.machines["n01"].services["web"] != before


@pytest.mark.parametrize("side", [parent, agent])
def test_where_they_plan_nodes_otherwise_services_go_on(side: Process) -> None:
    world = renewed(9, side, KINDS, otherwise(LABNODE), SERVICE)
    world.machines["n01"].services.clear()
    world.run(10)
    assert "web" in world.machines["n01"].services


# What differs in services, and how it is said; what differs in nodes has nothing to do with it.
DIFFERENT = {
    f"runs service {SERVICE.version} with other parts than here": (KINDS, otherwise(SERVICE)),
    "has other kinds: service": (grown("service"), SERVICE),
}


@pytest.mark.parametrize("side", [parent, agent])
@pytest.mark.parametrize("why", DIFFERENT)
def test_where_they_plan_services_otherwise_these_stay_as_they_are_and_both_say_why(
    why: str, side: Process
) -> None:
    kinds, service = DIFFERENT[why]
    world = renewed(10, side, kinds, otherwise(LABNODE), service)
    world.propose([SetDesired(web("n01"), "port", 8080, "site")])
    before = dict(world.machines["n01"].services)
    world.run(20)
    assert (dict(world.machines["n01"].services), "web" in before) == (before, True)
    assert stance(world.parent) == (Condition.WAITING, f"the agent of n01 {why}")
    assert stance(world.agents["n01"]) == (Condition.WAITING, f"the parent {why}")
    world.crash(side(world))
    world.run(3)
    assert world.settle(30)
    assert world.machines["n01"].services != before
