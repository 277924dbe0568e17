import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Literal

import pytest

from haptera.kinds import node, service, system
from haptera.kinds.node import Agent, Busy, Power
from haptera.kinds.service import Run
from haptera.model.declared.schema import Variable
from haptera.model.entity import EntityId
from haptera.model.errors import Code
from haptera.model.parts import WITHIN_MS_MAX, Change, Context, Look, Manifest, Requirement, Step
from haptera.sdk import ANY, PARENT, Applied, EnrolmentLevel, HapteraError, Module, Target

ROOT = Path(__file__).resolve().parents[2]


def connect(target: Target) -> Target:
    return target


def test_a_module_declares_what_its_decorators_say() -> None:
    module = Module("redfish", connect=connect, where={node.platform: "redfish"}, context=PARENT)
    power = module.serves(node.power, fails_to=Power.HUNG)
    agent = module.serves(node.agent)

    @power.look(every_s=30, outcomes=(Power.OFF, Power.ON))
    async def look(target: Target) -> Power:
        return Power.ON

    @power.watch
    async def watch(target: Target) -> AsyncIterator[Power]:
        yield Power.ON

    @power.step(
        (Power.ON, Power.HUNG),
        Power.OFF,
        within_s=180,
        excludes={node.busy: Busy.BUSY},
        cost=3,
        disruptive=True,
    )
    async def switch_off(target: Target) -> None: ...

    @module.step(
        power.goes(Power.OFF, Power.ON),
        agent.goes(ANY, Agent.UP, expected=True),
        within_s=60,
        late_s=2.5,
        enrols=True,
    )
    async def boot(target: Target) -> None: ...

    where = (Requirement("platform", ("redfish",)),)
    assert module.manifest() == Manifest(
        "redfish",
        "1",
        Context.PARENT,
        looks=(
            Look(
                "redfish",
                "look",
                "node",
                "power",
                ("off", "on"),
                requires=where,
                context=Context.PARENT,
                every_ms=30_000,
                within_ms=5_000,
                watched=True,
            ),
        ),
        steps=(
            Step(
                "redfish",
                "switch_off",
                "node",
                (Change("power", ("on", "hung"), "off"),),
                requires=where,
                excludes=(Requirement("busy", ("busy",)),),
                cost=3,
                context=Context.PARENT,
                within_ms=180_000,
                late_ms=180_000,
                fails_to="hung",
                disruptive=True,
            ),
            Step(
                "redfish",
                "boot",
                "node",
                (
                    Change("power", ("off",), "on"),
                    Change("agent", ("*",), "up", expected=True),
                ),
                requires=where,
                context=Context.PARENT,
                within_ms=60_000,
                late_ms=2_500,
                fails_to="hung",
                enrols=True,
            ),
        ),
    )


def test_a_module_says_how_it_hands_tokens_to_nodes() -> None:
    """One that says nothing is taken for the weakest."""
    silent = Module("some", connect=connect)
    cloud = Module("some", connect=connect, enrolment=EnrolmentLevel.OUT_OF_BAND)
    told = [one.manifest().enrolment for one in (silent, cloud)]
    assert told == [EnrolmentLevel.WINDOW, EnrolmentLevel.OUT_OF_BAND]


def test_what_is_of_another_kind_is_named_by_its_path() -> None:
    module = Module("some", connect=connect, where={node.platform: ("x86", "arm")})
    run = module.serves(service.run)

    @run.look(outcomes=(Run.RUNNING,), requires={node.agent: Agent.UP})
    async def look(target: Target) -> Run:
        return Run.RUNNING

    @run.step(Run.STOPPED, Run.RUNNING, within_s=1, requires={service.applied: Applied.STALE})
    async def start(target: Target) -> None: ...

    platform = Requirement("node.platform", ("x86", "arm"))
    assert [part.requires for part in module.manifest().parts] == [
        (platform, Requirement("node.agent", ("up",))),
        (platform, Requirement("applied", ("stale",))),
    ]


def test_two_parts_of_one_name_are_refused() -> None:
    module = Module("some", connect=connect)
    power = module.serves(node.power)

    def declare() -> None:
        @power.step(Power.OFF, Power.ON, within_s=1)
        async def switch(target: Target) -> None: ...

    declare()
    with pytest.raises(HapteraError, match=r"some\.switch is declared twice"):
        declare()


def test_a_value_that_a_variable_never_has_is_refused() -> None:
    power = Module("some", connect=connect).serves(node.power)

    with pytest.raises(HapteraError, match=r"node\.busy is never 'up' \(use one of unknown, free"):

        @power.step(Power.OFF, Power.ON, within_s=1, excludes={node.busy: Agent.UP})
        async def switch_on(target: Target) -> None: ...


def test_a_watch_without_a_look_is_refused() -> None:
    power = Module("some", connect=connect).serves(node.power)

    with pytest.raises(HapteraError, match=r"declare one look at it, above its one watch"):

        @power.watch
        async def watch(target: Target) -> AsyncIterator[Power]:
            yield Power.ON


def test_a_step_changes_variables_of_one_kind() -> None:
    module = Module("some", connect=connect)
    power, run = module.serves(node.power), module.serves(service.run)

    with pytest.raises(HapteraError, match="variables of one kind"):
        module.step(power.goes(Power.OFF, Power.ON), run.goes(Run.STOPPED, Run.RUNNING), within_s=1)


async def nothing(target: Target) -> None: ...


def test_a_module_that_holds_and_releases_is_a_gate() -> None:
    module = Module("some", connect=connect)
    assert module.hold(nothing) is module.release(nothing) is nothing

    assert module.manifest() == Manifest("some", "1", Context.SELF, (), (), gate=True)


def test_half_a_gate_is_refused() -> None:
    module = Module("some", connect=connect)
    module.hold(nothing)

    with pytest.raises(
        HapteraError, match=r"an incomplete gate \(declare both hold and release\)"
    ) as refused:
        module.manifest()
    assert refused.value.code == Code.INVALID_MODULE


def test_a_gate_that_is_declared_twice_is_refused() -> None:
    module = Module("some", connect=connect)
    module.release(nothing)

    with pytest.raises(HapteraError, match="module some declares release twice"):
        module.release(nothing)


def test_what_runs_at_the_parent_can_be_a_gate_too() -> None:
    module = Module("some", connect=connect, context=PARENT)
    module.hold(nothing)
    module.release(nothing)

    assert (module.manifest().gate, module.manifest().context) == (True, PARENT)


@pytest.mark.parametrize("variable", [service.applied, system.staged])
def test_a_look_that_judges_itself_whether_what_is_desired_is_in_force_is_refused(
    variable: Variable[Applied],
) -> None:
    async def current(target: Target) -> str:
        return Applied.CURRENT if target.values else Applied.STALE

    def annotated(target: Target) -> Applied: ...

    def many(targets: Mapping[EntityId, Target]) -> Mapping[EntityId, Applied]: ...

    async def digest(target: Target) -> str:
        return target.digest if target.values else Applied.STALE

    async def either(target: Target) -> str | Literal[Applied.STALE]:
        return target.digest

    async def watch(target: Target) -> AsyncIterator[str]:
        yield Applied.CURRENT

    module = Module("some", connect=connect)
    look = module.serves(variable).look(outcomes=(Applied.STALE, Applied.CURRENT))
    for judges in (current, annotated, many):
        with pytest.raises(HapteraError, match=f"some.{judges.__name__} says itself"):
            look(judges)  # type: ignore[arg-type]
    assert look(digest) is digest
    with pytest.raises(HapteraError, match=r"some.digest says itself"):
        module.serves(variable).watch(watch)
    assert look(either) is either


TYPED = """
from haptera.kinds import node, service, system
from haptera.kinds.node import Agent, Power
from haptera.sdk import Applied, Module, Target

class Bmc:
    def __init__(self, target: Target) -> None: ...
    async def read(self) -> str: ...

module = Module("typed", connect=Bmc)
power = module.serves(node.power, fails_to=Power.HUNG)
applied = module.serves(service.applied)

@power.look(outcomes=(Power.OFF, Power.ON))
async def look(bmc: Bmc) -> Power:
    return Power(await bmc.read())

@applied.look(outcomes=(Applied.STALE, Applied.CURRENT))
async def look_applied(bmc: Bmc) -> str:
    return await bmc.read()

@power.step((Power.OFF, Power.HUNG), Power.ON, within_s=60)
async def switch_on(bmc: Bmc) -> None: ...
"""
WRONG = """
wrong = module.serves(node.power, fails_to=Agent.UP)

@power.look(outcomes=(Agent.UP,))
async def wrong_outcome(bmc: Bmc) -> Power: ...

@power.look(outcomes=(Power.ON,))
async def wrong_reading(bmc: Bmc) -> Agent: ...

@power.look(outcomes=(Power.ON,))
async def wrong_handler(bmc: int) -> Power: ...

@power.step(Power.OFF, Agent.UP, within_s=1)
async def wrong_target(bmc: Bmc) -> None: ...

@power.step("off", Power.ON, within_s=1)
async def wrong_source(bmc: Bmc) -> None: ...

@power.step(Power.OFF, Power.ON, within_s=1)
async def wrong_result(bmc: Bmc) -> Power: ...

@power.step(Power.OFF, Power.ON)
async def no_limit(bmc: Bmc) -> None: ...
"""


@pytest.mark.slow
def test_a_wrong_value_function_or_result_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    source = tmp_path / "typed.py"
    source.write_text(TYPED + WRONG)
    # The bodies do not matter here, and most are left out.
    options = ["--strict", "--disable-error-code", "empty-body", "--cache-dir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(source)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": "", "MYPYPATH": str(ROOT / "src")},
    )

    lines = (TYPED + WRONG).splitlines()
    found = [
        lines[int(line.split(":")[1]) - 1].strip()
        for line in done.stdout.splitlines()
        if ": error: " in line
    ]
    assert found == [
        "wrong = module.serves(node.power, fails_to=Agent.UP)",
        "@power.look(outcomes=(Agent.UP,))",
        "@power.look(outcomes=(Power.ON,))",
        "@power.look(outcomes=(Power.ON,))",
        "@power.step(Power.OFF, Agent.UP, within_s=1)",
        '@power.step("off", Power.ON, within_s=1)',
        "@power.step(Power.OFF, Power.ON, within_s=1)",
        "@power.step(Power.OFF, Power.ON)",
    ], done.stdout


@pytest.mark.parametrize("within_s", [-1, 0, 86_400.001])
def test_no_part_takes_longer_than_a_day_and_so_no_process_that_is_replaced_does(
    within_s: float,
) -> None:
    module = Module("some", connect=connect)
    module.serves(node.power).step(Power.OFF, Power.ON, within_s=within_s)(nothing)

    with pytest.raises(HapteraError, match=r"some.nothing is .* \(choose from 0.001 s to 86400"):
        module.manifest()


@pytest.mark.parametrize("late_s", [-1, 86_400.001])
def test_no_step_takes_effect_later_than_a_day_after_its_call(late_s: float) -> None:
    """A budget that grants it a place would hold that place for as long."""
    module = Module("some", connect=connect)
    module.serves(node.power).step(Power.OFF, Power.ON, within_s=1, late_s=late_s)(nothing)

    with pytest.raises(HapteraError, match=r"`late` of some.nothing is"):
        module.manifest()


def test_a_part_may_take_a_day() -> None:
    module = Module("some", connect=connect)
    module.serves(node.power).step(Power.OFF, Power.ON, within_s=86_400)(nothing)

    assert module.manifest().steps[0].within_ms == WITHIN_MS_MAX
