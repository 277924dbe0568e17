"""The example of parts that take many entities, tell their progress and stop, in real processes."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.chassis import test_chassis
from haptera.model.effects import Call, Work
from haptera.model.entity import node_id
from haptera.model.events import Answered, Failed
from haptera.runtime import clock
from tests.cli.rig import client_of, served, typed
from tests.lab.rig import ROOT, files_below, wait_for
from tests.network import NETWORK
from tests.runtime.test_misbehaving import live
from tests.runtime.test_process import HOUR_NS

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(480)]

ADDRESS = f"{NETWORK}.58.1"
# So many stages of so many seconds: whoever stops a step has time to.
SLOW = ("STAGES: Final = (", 'STAGES: Final = ("slow",) * 1_000 + (')

test_aged_on_its_bench = test_chassis.test_what_the_manager_knew_before_a_step_is_no_outcome_of_it
test_on_its_bench = test_chassis.test_a_blade_is_powered_up_stage_by_stage_and_down_as_one_of_many


class Typing:
    """A chassis under a parent in a folder, and what is typed there."""

    def __init__(self, folder: Path, code: str) -> None:
        self.folder = folder
        (folder / "chassis.py").write_text(code)
        shutil.copy(ROOT / "examples" / "chassis" / "site.yaml", folder)

    def type(self, *words: object) -> str:
        code, out, errors = typed(*words, folder=self.folder, client=client_of(self.folder))
        assert code == 0, errors
        return out

    def node(self, name: str) -> Any:
        return json.loads(self.type("get", f"node:{name}", "-o", "json"))

    def put(self, *slots: int) -> Path:
        """Blades into these slots; returns where the manager keeps its log."""
        folder = wait_for(lambda: next(self.logs(), None)).parent
        for slot in slots:
            (folder / f"slot-{slot}").write_text("off")
        return folder

    def logs(self) -> Iterator[Path]:
        return (one for one in files_below(self.folder) if one.name == "requests")

    def requests(self) -> list[str]:
        (found,) = self.logs()
        return found.read_text().splitlines()


CODE = (ROOT / "examples" / "chassis" / "chassis.py").read_text()


async def test_a_hundred_looks_cost_one_request_and_each_is_answered_by_itself(
    tmp_path: Path,
) -> None:
    for slot in range(1, 100):
        (tmp_path / f"slot-{slot}").write_text("off" if slot % 2 else "on")

    async with live(tmp_path, places={"chassis": "examples.chassis.chassis:module"}) as house:
        await house.start("chassis")
        deadline_at = clock.now_ns() + HOUR_NS
        for number in range(1, 101):
            attributes = {"bmc": f"slot-{number}"}
            node = node_id(f"n{number}")
            house.processes.call(
                Call(number, Work.LOOK, "chassis", "look", node, attributes, {}, "", deadline_at)
            )
        found = [await house.answer(number) for number in range(1, 101)]
        values = [one.value for one in found if isinstance(one, Answered)]
        assert values == [("off", "on")[number % 2 == 0] for number in range(1, 100)]
        assert found[-1] == Failed(100, "the slot is empty")

    # The daemon's frames come in a few pieces, each of them gathered.
    requests = (tmp_path / "requests").read_text().splitlines()
    assert len(requests) <= 5
    assert {*requests} == {"powers"}


async def test_a_look_says_how_old_what_it_tells_is(tmp_path: Path) -> None:
    (tmp_path / "slot-1").write_text("on")
    (tmp_path / "age").write_text("30")

    async with live(tmp_path, places={"chassis": "examples.chassis.chassis:module"}) as house:
        await house.start("chassis")
        before, node = clock.now_ns(), node_id("n1")
        attributes, deadline_at = {"bmc": "slot-1"}, before + HOUR_NS
        house.processes.call(
            Call(1, Work.LOOK, "chassis", "look", node, attributes, {}, "", deadline_at)
        )
        found = await house.answer(1)
        assert isinstance(found, Answered)
        assert (found.value, before <= found.at + 30 * 10**9 <= clock.now_ns()) == ("on", True)


@pytest.mark.long
def test_many_are_switched_and_each_is_answered_by_itself(
    tmp_path: Path,
) -> None:
    one = Typing(tmp_path, CODE)
    with served(tmp_path, "--site", tmp_path / "site.yaml", address=ADDRESS):
        one.put(1, 2)
        for name in ("n1", "n2"):
            wait_for(lambda name=name: one.node(name)["observed"].get("power"))
        # The third slot is empty, and that is no fault of the others.
        wait_for(lambda: "the slot is empty" in str(one.node("n3")))
        one.type("power", "on", "n[1-2]")
        one.type("wait", "n[1-2]", "--for", "power=on")
        dry = json.loads(one.type("power", "off", "n[1-2]", "--dry-run", "-o", "json"))
        one.type("power", "off", "n[1-2]", "--digest", dry["plans"][0]["digest"])
        one.type("wait", "n[1-2]", "--for", "power=off")
        off = {slot for text in one.requests() if text.startswith("off") for slot in text.split()}
        assert off == {"off", "slot-1", "slot-2"}


def test_a_long_step_tells_how_far_it_is_and_stops_where_something_else_is_desired(
    tmp_path: Path,
) -> None:
    one = Typing(tmp_path, CODE.replace(*SLOW))
    with served(tmp_path, "--site", tmp_path / "site.yaml", address=ADDRESS):
        folder = one.put(1)
        one.type("power", "on", "n1")
        doing = wait_for(lambda: (d := one.node("n1").get("doing")) and d.get("progress") and d)
        assert (doing["part"], doing["progress"]) == ("chassis.switch_on", "slow")
        wait_for(lambda: one.node("n1")["doing"]["done"] > 0)
        assert "chassis.switch_on: runs, slow (" in one.type("why", "n1")
        assert "chassis.switch_on: runs, slow (" in one.type("status")

        # The step has minutes to go, and ends at once.
        one.type("power", "off", "n1")
        one.type("wait", "n1", "--for", "converged", "--within", "30s")
        told = one.node("n1")
        assert (told["condition"], told["error"]) == ("converged", None)
        tried = json.loads(one.type("chain", "n1", "-o", "json"))["tried"]
        assert tried[-1]["outcome"] == "stopped before slow"
        assert (folder / "slot-1").read_text() == "off"
