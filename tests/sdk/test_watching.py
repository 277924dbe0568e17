"""A controller that is told of time passing, on a simulated cluster."""

from dataclasses import dataclass

from haptera.model.changes import Declare
from haptera.model.entity import node_id
from haptera.sdk import Changes, Cluster, Controller
from haptera.testing.desk import Desk

TICK_S = 10


@dataclass(frozen=True)
class Settings:
    """None."""


def watching(told: list[Changes], tick_s: float | None) -> Desk[Settings]:
    controller = Controller("counting", settings=Settings)

    @controller.run
    async def count(cluster: Cluster[Settings]) -> None:
        async for changes in cluster.watch(kinds=["node"], tick_s=tick_s):
            told.append(changes)  # noqa: PERF401  it never ends

    return Desk(controller, {}, ["n1"])


def test_where_nothing_changes_time_that_passes_is_told() -> None:
    told: list[Changes] = []
    with watching(told, TICK_S) as one:
        one.propose(Declare(node_id("n1"), {"platform": "labnode"}, "site"))
        one.run(60)
        told.clear()
        one.run(10 * TICK_S)
        ticks = [one for one in told if not one.changed]
        assert 5 <= len(ticks) <= 10
        assert {(one.types == {}, one.gone, one.fresh) for one in ticks} == {(True, (), False)}
        # All is there as it is, not what changed alone.
        assert {tuple(one.now) for one in ticks} == {("node:n1",)}
        # A change is told at once, between two of them.
        told.clear()
        one.propose(Declare(node_id("n1"), {"platform": "labnode", "rack": "r1"}, "site"))
        assert one.until(lambda: any(one.changed for one in told), within_s=TICK_S / 2)


def test_without_a_tick_only_changes_are_told() -> None:
    told: list[Changes] = []
    with watching(told, None) as one:
        one.propose(Declare(node_id("n1"), {"platform": "labnode"}, "site"))
        one.run(60)
        told.clear()
        one.run(10 * TICK_S)
        assert [one for one in told if not one.changed] == []
