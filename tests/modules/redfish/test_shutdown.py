"""The shutdown of an operating system by the ways that its BMC offers."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from haptera.modules.redfish.exchange import RedfishError
from tests.modules.redfish.fake_service import (
    RESET,
    SYSTEM,
    Asked,
    Told,
    fake_service,
    system,
    usual,
)

pytestmark = pytest.mark.net

BUTTON = "PushPowerButton"
GRACEFUL = "GracefulShutdown"


def offering(*resets: str, power: str = "On") -> dict[str, object]:
    reset = {"target": RESET, "ResetType@Redfish.AllowableValues": resets}
    return system(PowerState=power, Actions={"#ComputerSystem.Reset": reset})


@pytest.mark.parametrize(
    ("resets", "power", "asked", "given"),
    [
        (["On", "ForceOff", BUTTON, GRACEFUL], "On", True, [GRACEFUL]),
        (["On", "ForceOff", BUTTON], "On", True, [BUTTON]),
        # It would switch on what went off meanwhile.
        (["On", "ForceOff", BUTTON], "Off", True, []),
        (["On", "ForceOff", BUTTON], "PoweringOff", True, []),
        (["On", "ForceOff"], "On", False, []),
    ],
)
def test_a_system_is_told_by_the_button_where_nothing_else_tells_it(
    tmp_path: Path, resets: Sequence[str], power: str, asked: bool, given: list[str]
) -> None:
    shown = offering(*resets, power=power)
    with fake_service(tmp_path, lambda one: usual(one, shown)) as service:
        assert asyncio.run(service.bmc().ask_to_shut_down()) is asked
        assert [one.body["ResetType"] for one in service.changes] == given


@pytest.mark.parametrize(
    "first",
    [None, Told(428), Told(307, headers={"Location": f"{RESET}/"})],
    ids=["at once", "with a condition", "elsewhere"],
)
def test_a_button_is_pressed_once_though_nobody_answers(tmp_path: Path, first: Told | None) -> None:
    pressed = list[str]()

    def answers(asked: Asked) -> Told:
        if asked.method != "POST":
            return usual(asked, {**offering("On", BUTTON), "@odata.etag": '"1"'})
        if first is not None and len(service.changes) == 1:
            return first
        pressed.append(asked.line)
        raise ConnectionError  # It hangs up.

    with fake_service(tmp_path, answers) as service:
        with pytest.raises(RedfishError, match="does not answer"):
            asyncio.run(service.bmc().ask_to_shut_down())
        assert len(pressed) == 1


def test_a_button_is_not_pressed_where_the_power_went_off_while_the_bmc_was_asked(
    tmp_path: Path,
) -> None:
    """The kinds of reset are a request of their own, which a slow BMC answers in seconds."""
    described = f"{SYSTEM}/ResetActionInfo"
    parameter = {"Name": "ResetType", "AllowableValues": ["On", "ForceOff", BUTTON]}
    reset = {"target": RESET, "@Redfish.ActionInfo": described}

    def answers(asked: Asked) -> Told:
        if asked.path == described:
            return Told(body={"Parameters": [parameter]})
        power = "Off" if f"GET {described}" in service.lines else "On"
        return usual(asked, system(PowerState=power, Actions={"#ComputerSystem.Reset": reset}))

    with fake_service(tmp_path, answers) as service:
        assert asyncio.run(service.bmc().ask_to_shut_down())
        assert service.changes == []


@pytest.mark.parametrize("busy", [408, 423, 425, 429, 503])
def test_a_bmc_that_is_too_busy_to_tell_of_a_press_may_have_pressed(
    tmp_path: Path, busy: int
) -> None:
    """It has accepted the press: an error for it not to be done yet would have it pressed again."""
    monitor = "/redfish/v1/TaskService/TaskMonitors/7"

    def answers(asked: Asked) -> Told:
        if asked.method == "POST":
            return Told(202, headers={"Location": monitor, "Retry-After": "1"})
        return Told(busy) if asked.path == monitor else usual(asked, offering("On", BUTTON))

    with fake_service(tmp_path, answers) as service:
        with pytest.raises(RedfishError, match=f"answers {busy}"):
            asyncio.run(service.bmc().ask_to_shut_down())
        assert len(service.changes) == 1
