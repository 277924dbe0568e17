"""How an operating system is told to shut down, by what its BMC offers."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from haptera.modules.redfish.exchange import RedfishError
from tests.modules.redfish.fake_service import (
    RESET,
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


def test_a_button_is_pressed_once_though_nobody_answers(tmp_path: Path) -> None:
    def answers(asked: Asked) -> Told:
        if asked.method == "POST":
            raise ConnectionError  # It has pressed, and hangs up.
        return usual(asked, offering("On", BUTTON))

    with fake_service(tmp_path, answers) as service:
        with pytest.raises(RedfishError, match="does not answer"):
            asyncio.run(service.bmc().ask_to_shut_down())
        assert len(service.changes) == 1
