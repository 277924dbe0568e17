"""What a roll is said to wait for, from how its systems stand."""

import msgspec

from haptera.controllers.roll.progress import RollProgress, RollState, progress
from haptera.model.answers.views import Condition
from tests.controllers.test_groups import a_view

NOW_S = 1_795_284_000.0  # 18:00 UTC
FULL = "system.flip waits: the budget of n1 allows 3 an hour"


def test_a_roll_that_waits_for_a_budget_says_at_what_time_there_is_room():
    roll = a_view("roll:b", image="b")
    node = a_view("node:n1", {"busy": "free"})
    runs = {"run": "running", "applied": "stale", "staged": "current"}
    system = a_view("system:compute@n1", runs, image="b", spare="a", roll="b")
    waits = {"condition": Condition.WAITING, "why": FULL, "again_in_ms": 720_000}
    waiting = msgspec.structs.replace(system, **waits)
    why = f"waits for system:compute@n1: {FULL}, next 18:12 UTC"
    found = progress(roll, [roll, node, waiting], NOW_S)
    assert found == RollProgress("b", "b", RollState.RUNNING, 0, 1, 1, why)
