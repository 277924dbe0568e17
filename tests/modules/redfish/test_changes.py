"""Where and under which condition a change is written: settings resources and entity tags."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from haptera.sdk import Refused
from tests.modules.redfish.fake_service import (
    RESET,
    SYSTEM,
    Answers,
    Asked,
    FakeService,
    Told,
    error,
    fake_service,
    system,
    usual,
)

pytestmark = pytest.mark.net

SETTINGS = f"{SYSTEM}/SD"
PENDING = {"@Redfish.Settings": {"SettingsObject": {"@odata.id": SETTINGS}}}
PXE = {"Boot": {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}}
UEFI = {"BootSourceOverrideMode": "UEFI"}


def booted(service: FakeService, quirks: str = "") -> list[tuple[str, str | None]]:
    """Which places were told to boot from the network, and of which state."""
    asyncio.run(service.bmc(quirks=quirks).boot_from_network_once())
    return [(one.path, one.headers["If-Match"]) for one in service.changes]


@pytest.mark.parametrize(
    ("maker", "quirks", "shows", "told"),
    [
        ("ACME", "", UEFI, {}),
        ("Supermicro", "", UEFI, UEFI),
        ("ACME", "boot-mode", UEFI, UEFI),
        ("Supermicro", "", {}, {}),
    ],
)
def test_the_mode_of_booting_is_named_to_who_forgets_it(
    tmp_path: Path, maker: str, quirks: str, shows: dict[str, str], told: dict[str, str]
) -> None:
    found = system(Manufacturer=maker, Boot=shows)
    with fake_service(tmp_path, lambda asked: usual(asked, found)) as service:
        booted(service, quirks)
        assert [one.body for one in service.changes] == [{"Boot": PXE["Boot"] | told}]


@pytest.mark.parametrize("listed", [["None", "UefiHttp"], ["UefiHttp", "Pxe"]])
def test_what_it_boots_from_is_read_by_its_first_name_too(
    tmp_path: Path, listed: list[str]
) -> None:
    """Before there were annotations of allowable values."""
    found = system(Boot={"BootSourceOverrideSupported": listed})
    with fake_service(tmp_path, lambda asked: usual(asked, found)) as service:
        booted(service)
        chosen = service.changes[0].body["Boot"]["BootSourceOverrideTarget"]
        assert chosen == ("Pxe" if "Pxe" in listed else "UefiHttp")


def settings_at(there: dict[str, Any] | None, *, refuses: str) -> Answers:
    """A service with a settings resource that shows this; one of the two refuses changes."""

    def answers(asked: Asked) -> Told:
        if asked.line == f"PATCH {refuses}":
            return Told(400, error("moved to FutureState URI"))
        if asked.line == f"GET {SETTINGS}":
            return Told(404) if there is None else Told(200, there, {"ETag": '"s1"'})
        told = usual(asked, system(**PENDING))
        return Told(told.status, told.body, {"ETag": '"a1"'})

    return answers


BOOT = {"Boot": {"BootSourceOverrideTarget": "None"}}


@pytest.mark.parametrize(
    ("there", "refuses", "asked"),
    [
        (BOOT, SYSTEM, [(SETTINGS, '"s1"')]),
        (BOOT, SETTINGS, [(SETTINGS, '"s1"'), (SYSTEM, '"a1"')]),
        ({"Bios": {}}, SETTINGS, [(SYSTEM, '"a1"')]),
        ({"Bios": {}}, SYSTEM, [(SYSTEM, '"a1"'), (SETTINGS, '"s1"')]),
        (None, SETTINGS, [(SYSTEM, '"a1"')]),
    ],
)
def test_the_boot_is_set_where_the_service_has_its_settings(
    tmp_path: Path, there: dict[str, Any] | None, refuses: str, asked: list[tuple[str, str]]
) -> None:
    with fake_service(tmp_path, settings_at(there, refuses=refuses)) as service:
        assert booted(service) == asked
        assert service.changes[-1].body == PXE


def tagged(head: str | None, body: str | None, accepts: str | None, otherwise: int) -> Answers:
    """A service that shows these tags, and accepts one condition only."""

    def answers(asked: Asked) -> Told:
        if asked.method == "PATCH":
            fits = asked.headers["If-Match"] == accepts
            return Told(204 if fits else otherwise)
        headers = {} if head is None else {"ETag": head}
        more = {} if body is None else {"@odata.etag": body}
        told = usual(asked, system(**more))
        return Told(told.status, told.body, headers)

    return answers


@pytest.mark.parametrize(
    ("head", "body", "accepts", "otherwise"),
    [
        ('"1"', None, '"1"', 412),
        ('W/"1"', None, '"1"', 412),
        ('W/"1"', None, 'W/"1"', 412),
        ('""abc""', '"abc"', '"abc"', 412),
        ('""abc""', None, '"abc"', 412),
        ("abc", None, '"abc"', 412),
        (None, '"abc"', '"abc"', 428),
        (None, 'W/"abc"', '"abc"', 428),
        (None, None, "*", 428),
        (None, None, None, 412),
        ('"never the right one"', None, None, 412),
        ('"never the right one"', None, "*", 412),
    ],
)
def test_a_tag_is_tried_in_all_the_ways_that_services_write_it(
    tmp_path: Path, head: str | None, body: str | None, accepts: str | None, otherwise: int
) -> None:
    with fake_service(tmp_path, tagged(head, body, accepts, otherwise)) as service:
        assert booted(service)[-1] == (SYSTEM, accepts)


def test_what_was_changed_meanwhile_is_read_again(tmp_path: Path) -> None:
    versions = iter(range(100))

    def answers(asked: Asked) -> Told:
        if asked.method == "PATCH":
            return Told(204 if asked.headers["If-Match"] == '"2"' else 412)
        told = usual(asked, system())
        return Told(told.status, told.body, {"ETag": f'"{next(versions)}"'})

    with fake_service(tmp_path, answers) as service:
        assert [tag for _, tag in booted(service)] == ['"1"', '"2"']


@pytest.mark.parametrize("status", [412, 428])
def test_who_accepts_no_condition_refuses_after_a_few(tmp_path: Path, status: int) -> None:
    versions = iter(range(100))

    def answers(asked: Asked) -> Told:
        if asked.method == "PATCH":
            return Told(status)
        told = usual(asked, system())
        return Told(told.status, told.body, {"ETag": f'"{next(versions)}"'})

    with fake_service(tmp_path, answers) as service:
        with pytest.raises(Refused, match=str(status)):
            booted(service)
        assert [one.headers["If-Match"] for one in service.changes][-2:] == [None, "*"]
        assert len(service.changes) <= 8


def test_an_action_is_told_of_a_state_where_the_service_demands_it(tmp_path: Path) -> None:
    def answers(asked: Asked) -> Told:
        if asked.line == f"POST {RESET}":
            return Told(204 if asked.headers["If-Match"] == '"1"' else 428)
        told = usual(asked, system())
        return Told(told.status, told.body, {"ETag": '"1"'})

    with fake_service(tmp_path, answers) as service:
        asyncio.run(service.bmc().force_off())
        assert [one.headers["If-Match"] for one in service.changes] == [None, '"1"']
