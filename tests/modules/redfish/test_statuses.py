"""What each error of a service says of the effect of a command, and what follows from it."""

import asyncio
from pathlib import Path

import pytest

from haptera.modules.effects import DeviceError, Effect, NotYetError
from haptera.modules.power import switch_off
from haptera.modules.statuses import EFFECTS, effect_of
from haptera.sdk import Refused
from tests.modules.redfish.fake_service import Asked, Told, fake_service, system, usual

DOCS = Path(__file__).resolve().parents[3] / "docs" / "reference"


@pytest.mark.net
@pytest.mark.parametrize("status", [*sorted(int(one) for one in EFFECTS), 418, 500, 502, 504])
def test_the_power_is_cut_where_a_system_cannot_be_asked(tmp_path: Path, status: int) -> None:
    def answers(asked: Asked) -> Told:
        soft = b"GracefulShutdown" in asked.content
        return Told(status) if soft else usual(asked, system())

    with fake_service(tmp_path, answers) as service:
        match effect_of(status):
            case Effect.LACKING:
                asyncio.run(switch_off(service.bmc()))
            case Effect.NEVER:
                with pytest.raises(Refused):
                    asyncio.run(switch_off(service.bmc()))
            case Effect.NOT_YET:
                with pytest.raises(NotYetError):
                    asyncio.run(service.bmc().ask_to_shut_down())
            case Effect.UNKNOWN:
                with pytest.raises(DeviceError):
                    asyncio.run(service.bmc().ask_to_shut_down())
        resets = [one.body["ResetType"] for one in service.changes]
    cut = ["ForceOff"] * (effect_of(status) is Effect.LACKING)
    assert resets == ["GracefulShutdown", *cut]


def test_what_passes_is_told_from_what_never_will_be() -> None:
    assert {effect_of(one) for one in (408, 409, 423, 425, 429, 503)} == {Effect.NOT_YET}
    assert {effect_of(one) for one in (400, 404, 405, 501)} == {Effect.LACKING}
    assert {effect_of(one) for one in (401, 403, 412, 422, 451)} == {Effect.NEVER}
    assert {effect_of(one) for one in (500, 502, 504, 507, 599)} == {Effect.UNKNOWN}


def test_the_page_has_each_status_with_its_effect() -> None:
    page = (DOCS / "redfish.md").read_text()
    rows = [row for row in page.splitlines() if row.startswith("| ")]
    missing = [
        status
        for status, effect in EFFECTS.items()
        if not any(f"| {effect} |" in row and str(int(status)) in row for row in rows)
    ]
    assert missing == []
