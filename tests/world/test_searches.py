"""Clusters in a storm whose daemons can afford no plan at all: workers search for each of them."""

import pytest

from tests.world.hunt import through
from tests.world.storm import Storm

SEEDS = range(3)
KILLED = 0.3


@pytest.mark.parametrize("seed", SEEDS)
def test_a_storm_is_weathered_though_workers_plan_and_are_killed_at_it(seed: int) -> None:
    storm = Storm(seed, work_max=0)
    storm.world.workers_killed = KILLED
    through(storm)
    assert storm.world.clock.happened["worker killed"]
