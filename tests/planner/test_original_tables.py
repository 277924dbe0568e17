"""The mutation tables of the original and of its application, and the chains they come to by hand.

The original has one word for "none" and "not known". Here what is there to be found is a value
(`none` of PXE, `down` of the run state); a mutation from the unknown is a look.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from haptera.planner.explain.problem_line import answer_line

PROBLEMS = Path(__file__).parent / "problems"
LAYERCAKE, KRAKEN = (
    json.loads((PROBLEMS / f"{name}.json").read_text(encoding="utf-8"))
    for name in ("layercake", "kraken")
)

SERVING = {"phys": "on", "pxe": "init", "run": "sync", "set": "active", "busy": "free"}


def asked(problem: dict[str, Any], **given: Any) -> dict[str, Any]:
    return answer_line(json.dumps(problem | given).encode())[1]


def chain(problem: dict[str, Any], **given: Any) -> list[str]:
    """Parts, looks with what they expect; all have cost 1, and none of these chains doubts."""
    found = asked(problem, **given)
    assert found["verdict"] == "chain", found
    links = [
        link["do"]
        if "do" in link
        else f"{link['look']} {'~' if link['hoped'] else '='} {link['expect']}"
        for link in found["chain"]
    ]
    assert (found["cost"], found["optimal"], found["doubts"]) == (len(links), True, False)
    return links


def reason(problem: dict[str, Any], **given: Any) -> tuple[str, str, str]:
    """Kind, variable and text."""
    found = asked(problem, **given)
    assert found["verdict"] == "none"
    return tuple(found["reason"].values())


BUSY, OFF = SERVING | {"busy": "busy"}, {"phys": "off"}
SILENT = {"phys": "on", "run": "error"}
# What is asked of which tables, and the reason why there is no chain.
NONE = {
    "a busy node keeps its power": (
        LAYERCAKE, BUSY, {}, OFF, "blocked", "busy",
        "no way to phys=off: power.ONtoOFF, like 2 other parts, is excluded by busy=busy",
    ),
    "a busy node keeps its images": (
        LAYERCAKE, BUSY, {}, {"set": "idle"}, "blocked", "busy",
        "no way to set=idle: imageapi.ACTIVEtoIDLE is excluded by busy=busy",
    ),
    "a busy node whose images failed for good has two things in its way": (
        LAYERCAKE, BUSY | {"set": "fatal"}, {}, OFF, "blocked", "busy",
        "no way to phys=off: 2 obstacles: imageapi.SYNCtoINIT requires set=idle, but "
        "set is fatal; power.ONtoOFF, like 1 other part, is excluded by busy=busy",
    ),
    # In the original what is forgotten excludes nothing, so that silence cut its power.
    "a busy node that fell silent keeps its power too": (
        LAYERCAKE, SILENT, {"busy": "busy"}, OFF, "blocked", "busy",
        "no way to phys=off: power.ONtoOFF is excluded by busy=busy, as last known",
    ),
    "images that failed for good are left by no step": (
        LAYERCAKE, SERVING | {"set": "fatal"}, {}, {"set": "active"}, "blocked", "set",
        "no way to set=active: imageapi.ERRORtoACTIVE starts from set=error, but set is fatal, "
        "and no step leads there",
    ),
    "power off and images ready cannot be had together": (
        LAYERCAKE, SERVING, {}, OFF | {"set": "idle"}, "unknowable-goal", "phys",
        "phys=off cannot be known together with set=idle: imageapi.UKtoIDLE requires phys=on",
    ),
    "an unknown platform has no look at its power": (
        LAYERCAKE | {"attributes": {"platform": "vbox"}}, OFF, {}, {"phys": "on"},
        "unknowable-goal", "phys", "phys=on can never be known where platform is vbox: "
        "libvirt.UKtoOFF is for platform=libvirt, power.UKtoOFF is for platform=powerapi",
    ),
    # The original power-cycles it, to forget the error.
    "nothing leads out of the error of a child that fell silent": (
        KRAKEN, SILENT, {"service": "run"}, {"run": "sync"}, "blocked", "run",
        "no way to run=sync: sse.INITtoSYNC starts from run=init, but run is error, "
        "and no step leads there",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NONE)
def test_where_there_is_no_chain_the_reason_is_told(name: str) -> None:
    problem, observed, remembered, desired, *told = NONE[name]
    found = reason(problem, observed=observed, remembered=remembered, desired=desired)
    assert found == tuple(told)


# Layercake


def test_a_machine_that_is_off_boots_and_loads_its_images() -> None:
    """Power, then each layer is looked at where the one below it allows, and taken on."""
    links = chain(
        LAYERCAKE,
        observed={"phys": "off"},
        remembered={"pxe": "none", "run": "down", "set": "idle"},
        desired={"set": "active"},
    )
    assert links[0] == "power.OFFtoON"
    # PXE and the run state are looked at in either order, but both before DHCP is waited for.
    assert Counter(links[1:4]) == Counter(["pxe.look = none", "pxe.NONEtoWAIT", "sse.look = down"])
    assert links.index("pxe.look = none") < links.index("pxe.NONEtoWAIT")
    assert links[4:] == [
        "pxe.WAITtoINIT",
        "sse.INITtoSYNC",
        "imageapi.UKtoIDLE = idle",
        "imageapi.IDLEtoACTIVE",
    ]


def test_power_goes_off_layer_by_layer() -> None:
    """The barrier: images idle, out of sync, and only then nothing excludes the power."""
    assert chain(LAYERCAKE, observed=SERVING, desired={"phys": "off"}) == [
        "imageapi.ACTIVEtoIDLE",
        "imageapi.SYNCtoINIT",
        "power.ONtoOFF",
    ]


@pytest.mark.parametrize("image_set", ["active", "update", "error"])
def test_images_become_idle_from_wherever_they_can(image_set: str) -> None:
    observed = SERVING | {"set": image_set}
    assert chain(LAYERCAKE, observed=observed, desired={"set": "idle"}) == [
        f"imageapi.{image_set.upper()}toIDLE"
    ]


@pytest.mark.parametrize(("platform", "module"), [("powerapi", "power"), ("libvirt", "libvirt")])
def test_a_machine_that_hangs_is_switched_off_and_on_by_its_own_platform(
    platform: str, module: str
) -> None:
    given = {"attributes": {"platform": platform}, "observed": {"phys": "hang"}}
    assert chain(LAYERCAKE, **given, desired={"phys": "on"}) == [
        f"{module}.HANGtoOFF",
        f"{module}.OFFtoON",
    ]


def test_the_table_for_libvirt_cuts_a_busy_node() -> None:
    """Its ONtoOFF excludes nothing: the table says so, and safety has to stand in its way."""
    assert chain(
        LAYERCAKE,
        attributes={"platform": "libvirt"},
        observed=SERVING | {"busy": "busy"},
        desired={"phys": "off"},
    ) == ["libvirt.ONtoOFF"]


CYCLE = {
    "name": "power.cycle",
    "changes": {"pxe": ["init", "none?"], "run": ["error", "down?"]},
    "requires": {"phys": "on", "platform": "powerapi"},
}


def test_an_error_is_left_where_a_step_says_what_power_cycling_does() -> None:
    """The original gets there by forgetting PXE and run state, and wishing for others."""
    failed = {"phys": "on", "pxe": "init", "run": "error"}
    assert reason(LAYERCAKE, observed=failed, desired={"run": "sync"}) == (
        "blocked",
        "run",
        "no way to run=sync: sse.INITtoSYNC starts from run=init, but run is error",
    )

    links = chain(
        LAYERCAKE,
        steps=[*LAYERCAKE["steps"], CYCLE],
        observed=failed,
        desired={"run": "sync"},
    )
    assert links[0] == "power.cycle"
    assert Counter(links[1:4]) == Counter(["pxe.look = none", "pxe.NONEtoWAIT", "sse.look = down"])
    assert links[4:] == ["pxe.WAITtoINIT", "sse.INITtoSYNC"]


# The original's own


def test_a_service_is_started_on_a_machine_that_is_off() -> None:
    assert chain(
        KRAKEN,
        observed={"phys": "off"},
        remembered={"run": "init", "service": "stop"},
        desired={"service": "run"},
    ) == [
        "power.OFFtoON",
        "sse.look = init",
        "sse.INITtoSYNC",
        "service.look = stop",
        "service.start",
    ]


def test_after_a_time_out_the_machine_hangs_and_is_switched_off_and_on() -> None:
    """INITtoSYNC fails to PHYS_HANG after 90 s."""
    assert chain(
        KRAKEN, observed={"phys": "hang"}, remembered={"run": "init"}, desired={"run": "sync"}
    ) == ["power.HANGtoOFF", "power.OFFtoON", "sse.look = init", "sse.INITtoSYNC"]


def test_a_child_that_comes_up_is_hoped_to_be_in_sync() -> None:
    assert chain(KRAKEN, observed={"phys": "on"}, desired={"run": "sync"}) == ["sse.look ~ sync"]


def test_all_that_is_known_becomes_a_memory_with_the_power() -> None:
    given = {"phys": "on", "run": "init"}
    found = asked(KRAKEN, observed=given, desired={"phys": "off"})
    assert found["states"] == [given, {"phys": "off"}]


@pytest.mark.parametrize("count", [1, 5, 8])
def test_variables_that_all_hang_on_the_power_take_a_look_and_a_step_each(count: int) -> None:
    """The original's second benchmark: 8 of them kept it for two minutes."""
    names = [f"v{number}" for number in range(count)]
    on = {"requires": {"phys": "on"}}
    problem = {
        "variables": KRAKEN["variables"] | {one: ["unknown", "a", "b"] for one in names},
        "looks": [KRAKEN["looks"][0]]
        + [{"name": f"look_{one}", "at": one, "outcomes": ["a", "b"], **on} for one in names],
        "steps": [KRAKEN["steps"][0]]
        + [{"name": f"set_{one}", "changes": {one: ["a", "b"]}, **on} for one in names],
    }
    links = chain(
        problem,
        observed={"phys": "off"},
        remembered=dict.fromkeys(names, "a"),
        desired=dict.fromkeys(names, "b"),
    )
    parts = [part for one in names for part in (f"look_{one} = a", f"set_{one}")]
    assert links[0] == "power.OFFtoON"
    assert Counter(links[1:]) == Counter(parts)
