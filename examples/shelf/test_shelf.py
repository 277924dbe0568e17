"""The module of the shelf, on a bench."""

import asyncio
from pathlib import Path

from examples.shelf.shelf import Machine, Session, module
from haptera.sdk import Condition
from haptera.testing.bench import Bench


def test_a_machine_is_switched_by_the_session_of_the_shelf(tmp_path: Path) -> None:
    machine = Machine(Session(tmp_path / "commands"), "slot-1")
    bench = Bench(module, {"bmc": "slot-1", "rack": "s1"}, on=machine)
    view = asyncio.run(bench.settle({"power": "on"}))
    assert view.condition is Condition.CONVERGED
    assert bench.calls == ["look", "switch_on", "look"]
    assert (tmp_path / "commands").read_text() == "login\nslot-1 on\n"
