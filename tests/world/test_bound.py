"""How long a change takes at most through a tree, by the formula of `docs/explain/tree.md`."""

import math
import re
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import pytest

from haptera.core.state.limits import MS, S
from haptera.model.answers.views import Condition
from haptera.model.changes import SetDesired
from haptera.model.entity import EntityId
from haptera.testing.network import NetworkFaults
from haptera.testing.tree import ONE_WAY_NS
from haptera.testing.world import TENDED_AN_HELLO, World
from haptera.testing.world_process import WorldProcess
from tests.core.scenario import row_of
from tests.world.history import CALM, settled, web
from tests.world.test_tree import NODES, tree

PAGE = Path(__file__).parents[2] / "docs/explain/tree.md"
# How rarely the bound may be missed.
ODDS = 1e-6
# What is not known to be heard is told again after so long, and so on.
AGAIN_NS, THEN_EACH_NS = (250 * MS, 500 * MS, 1 * S, 1 * S), 2 * S
# Of the simulated tree: a datagram, a commit, and parents between a node's own and the root.
DATAGRAM_NS, COMMIT_NS, LEVELS = 30 * MS, 2 * 20 * MS, 2
DEEP, NEAR = NODES[:4], NODES[4]
# So long, in H, that both sides take each other for lost.
CUT_FOR_H = 6
# How long an agent may take to act on the change.
ACTS_NS = 30 * S
ROUNDS = 8


def tells(loss: float) -> int:
    """How often a change is told until it is heard, but for these odds."""
    return 1 if loss == 0 else math.ceil(math.log(ODDS) / math.log(loss))


def link_ns(loss: float) -> int:
    """When the last of these is told."""
    waits = [*AGAIN_NS, *[THEN_EACH_NS] * tells(loss)]
    return [0, *accumulate(waits)][tells(loss) - 1]


def bound_ns(world: World, loss: float, levels: int) -> int:
    """Over one link with loss, and so many levels of parents, each tended now and then."""
    level_ns = world.hello_ns // TENDED_AN_HELLO + 2 * ONE_WAY_NS + COMMIT_NS
    return link_ns(loss) + DATAGRAM_NS + levels * level_ns


def wished(process: WorldProcess, entity: EntityId) -> object:
    one = row_of(process, entity).desired.values.get("port")
    return None if one is None else one.value


def converged(process: WorldProcess, entity: EntityId) -> bool:
    return row_of(process, entity).stance.condition is Condition.CONVERGED


def seen(process: WorldProcess, entity: EntityId) -> dict[str, str]:
    return {name: fact.value for name, fact in row_of(process, entity).belief.known.items()}


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.3, 0.5])
def test_a_change_is_through_the_tree_within_the_bound(loss: float) -> None:
    world = lossy(loss)
    bound, rng = bound_ns(world, loss, LEVELS), world.clock.rng("bound")
    for port in range(1_000, 1_000 + ROUNDS):
        world.run(rng.random() * 3)
        propose(world, [SetDesired(web(name), "port", port, "site") for name in DEEP])
        for name in DEEP:
            assert_heard(world, bound, name, port)
            assert_seen(world, bound, name)


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.3])
def test_a_change_from_a_cut_is_there_within_the_bound_once_it_is_mended(loss: float) -> None:
    world = lossy(loss)
    bound = bound_ns(world, loss, levels=0) + tells(loss) * world.hello_ns
    cut = frozenset(("parent", NEAR))
    for port in range(1_000, 1_000 + ROUNDS):
        world.network.cut.add(cut)
        world.run(CUT_FOR_H * world.hello_ns / S)
        propose(world, [SetDesired(web(NEAR), "port", port, "site")])
        world.network.cut.discard(cut)
        assert_heard(world, bound, NEAR, port)


def lossy(loss: float) -> World:
    """A tree that is as desired, and from now on loses so many datagrams."""
    world = settled(tree(7, CALM), 60)
    world.network.faults = NetworkFaults(loss=loss)
    return world


def propose(world: World, changes: list[SetDesired]) -> None:
    ticket = world.propose(changes)
    assert world.clock.run_until(world.clock.now + S, lambda: ticket in world.parent.replies)


def assert_heard(world: World, bound: int, name: str, port: int) -> None:
    """The agent has what is desired."""
    assert_within(world, bound, lambda: wished(world.agents[name], web(name)) == port)


def assert_seen(world: World, bound: int, name: str) -> None:
    """The root has what the agent saw when it had acted."""
    assert_within(world, ACTS_NS, lambda: converged(world.agents[name], web(name)))
    there = seen(world.agents[name], web(name))
    assert_within(world, bound, lambda: seen(world.parent, web(name)) == there)


def assert_within(world: World, bound: int, done: Callable[[], bool]) -> None:
    assert world.clock.run_until(world.clock.now + bound, done), bound / S


def test_the_page_has_the_figures_of_the_formula() -> None:
    rows = re.findall(r"^\| (\d+) % \| (\d+) \| ([\d.]+) s \|$", PAGE.read_text(), re.MULTILINE)
    figures = [(int(loss), int(count), float(within)) for loss, count, within in rows]
    losses = (0, 1, 10, 30, 50)
    assert figures == [(one, tells(one / 100), link_ns(one / 100) / S) for one in losses]
