"""A step that has failed is not tried again by way of a state that differs in something else."""

import asyncio
from types import SimpleNamespace

from haptera.core.state.limits import MS
from haptera.kinds.system import SystemRun
from haptera.model.answers.views import Condition
from haptera.model.effects import Call, Effect, Work
from haptera.model.events import Failed
from haptera.model.parts import Requirement, Step
from haptera.model.policy import STEPPING
from haptera.modules.system.home import SystemHome
from haptera.modules.system.module import module as systems
from haptera.modules.system.one_system import System
from haptera.sdk import Target
from haptera.testing.bench import Bench
from tests.core.test_oscillation import Rig, look, step


class OldHome(SystemHome):
    """Of a system that runs the image before, on a node where nothing can be staged."""

    def run(self) -> SystemRun:
        return SystemRun.RUNNING

    def started(self) -> SimpleNamespace:  # type: ignore[override]
        process = SimpleNamespace(lives=True)
        return SimpleNamespace(process=process, image="sha256:old", reference="old")


def old_system(target: Target) -> System:
    return System(target, OldHome(target.run_dir), SimpleNamespace())  # type: ignore[arg-type]


class Failing(Rig):
    """A rig in which the steps that are named fail, each time."""

    fails: frozenset[str] = frozenset()

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, Call) and effect.work is Work.STEP:
            path = f"{effect.module}.{effect.part}"
            if path in self.fails:
                self.done.append((self.now, path))
                self._coming.append((self.now + 10 * MS, Failed(effect.id, "broken", refused=True)))
                return
        super()._perform(effect)


LOOKS = tuple(look("b", name) for name in "xyz")
FILL = step("b", "fill", "y", "1")
TURN, RETURN = step("b", "turn", "z", "1"), step("b", "return", "z", "0")


def gadget(*steps: Step, fails: str) -> Failing:
    rig = Failing(LOOKS, steps, {})
    rig.fails = frozenset([fails])
    return rig


def test_nothing_else_is_changed_only_to_try_a_step_again_sooner() -> None:
    rig = gadget(FILL, TURN, RETURN, fails="b.fill")
    rig.run(600)
    assert {path for _, path in rig.done} == {"b.fill"}


def test_what_a_step_says_that_it_needs_is_brought_about_to_try_it_again() -> None:
    """It works from either of two values: where it fails from one, the other is tried."""
    either = step("b", "fill", "y", "1", Requirement("z", ("0", "1")))
    rig = gadget(either, TURN, fails="b.fill")
    rig.run(60)
    assert [path for _, path in rig.done][:3] == ["b.fill", "b.turn", "b.fill"]


def test_of_two_states_from_which_it_fails_neither_is_brought_about_for_the_sake_of_the_other() -> (
    None
):
    either = step("b", "fill", "y", "1", Requirement("z", ("0", "1")))
    rig = gadget(either, TURN, RETURN, fails="b.fill")
    rig.run(STEPPING.backoff_ms / 1_000)
    taken = [path for _, path in rig.done]
    assert taken[:3] == ["b.fill", "b.turn", "b.fill"]
    assert "b.return" not in taken[:4]


def test_what_else_is_desired_is_brought_about_meanwhile() -> None:
    """Both need z: the goals are not independent of each other."""
    needs = Requirement("z", ("1",))
    fill, lift = step("b", "fill", "y", "1", needs), step("b", "lift", "x", "1", needs)
    rig = gadget(fill, lift, TURN, fails="b.fill")
    rig.state["x"] = "0"
    rig.run(2)
    assert {path for _, path in rig.done} == {"b.fill", "b.lift", "b.turn"}
    assert rig.state == {"x": "1", "y": "0", "z": "1"}
    assert rig.row.stance.condition is Condition.STUCK


def test_a_system_whose_new_image_cannot_be_staged_runs_on() -> None:
    bench = Bench(systems, {}, connect=old_system)
    found = asyncio.run(bench.settle({"run": "running", "image": "new"}, within_s=20))
    assert found.condition is Condition.STUCK
    assert (found.error or "").startswith("system.stage: ")
    assert bench.calls.count("stage") > 3
    assert not {"stop", "flip", "start"} & set(bench.calls)
