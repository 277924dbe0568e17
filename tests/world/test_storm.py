"""Clusters in a storm: machines, disks, networks and processes at their worst, by seed."""

import subprocess
import sys

import pytest

from haptera.core.query import view
from tests.world.history import web
from tests.world.storm import Storm, check

STEPS = 25


@pytest.mark.parametrize("seed", range(30))
def test_in_any_storm_promises_hold_and_after_it_all_is_as_desired(seed: int) -> None:
    weather(seed)


def weather(seed: int) -> None:
    storm = Storm(seed)
    storm.unfold(STEPS)
    settled = storm.calm_down()
    check(storm)
    engine = storm.world.parent.engine
    assert engine is not None
    now = storm.world.clock.now
    assert settled, [view(row, now) for row in engine.table]
    for name, machine in storm.world.machines.items():
        row = engine.table.get(web(name))
        assert row is not None
        assert (machine.power, machine.services["web"]) == ("on", row.digest())


def test_a_storm_is_the_same_whatever_the_order_of_sets() -> None:
    program = "from tests.world.test_storm import history; print(history(11))"
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": hashing, "PATH": "/usr/bin"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hashing in ("1", "2")
    }
    assert len(told) == 1
    assert "Command(" in told.pop()


def history(seed: int) -> list[object]:
    storm = Storm(seed)
    storm.unfold(STEPS)
    world = storm.world
    recorded = [(one.commands, one.reads, one.starts) for one in world.machines.values()]
    return [world.clock.now, world.parent.turns, recorded]
