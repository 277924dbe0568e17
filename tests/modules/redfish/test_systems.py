"""A machine that says On is on, whatever else its BMC says of it."""

import asyncio
from collections.abc import Iterator, Sequence
from email.message import Message
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.modules.redfish.documents import Document, document_of, path_of
from haptera.modules.redfish.exchange import RedfishError
from haptera.modules.redfish.systems import ComputerSystem, RedfishAnswer
from haptera.sdk import HapteraError
from tests.modules.redfish.fake_service import (
    RESET,
    SYSTEM,
    SYSTEMS,
    Asked,
    Told,
    fake_service,
    system,
    usual,
)

ODD: Sequence[Any] = (None, 5, -1.5, True, "", "odd", "https://[", [], [None, 7], {}, {"a": None})


def members_of(document: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """The path of each member, at any depth."""
    for name, inner in document.items() if isinstance(document, dict) else ():
        yield (*path, name)
        yield from members_of(inner, *path, name)


def changed(document: dict[str, Any], path: Sequence[str], value: object) -> dict[str, Any]:
    """The same with another value there, or without that member where it is `...`."""
    name, *rest = path
    if rest:
        return {**document, name: changed(document[name], rest, value)}
    kept = {key: one for key, one in document.items() if key != name}
    return kept if value is ... else {**kept, name: value}


def shown(document: object) -> ComputerSystem:
    content = msgspec.json.encode(document)
    return ComputerSystem.of(RedfishAnswer(200, Message(), content, SYSTEM))


WHOLE = system(**{
    "Boot": {**system()["Boot"], "BootSourceOverrideMode": "UEFI"},  # type: ignore[dict-item]
    "@Redfish.Settings": {"SettingsObject": {"@odata.id": f"{SYSTEM}/SD"}},
})  # fmt: skip
PLACES = sorted(members_of(WHOLE))


def all_of(one: ComputerSystem) -> list[object]:
    """All that is ever asked of a system; none of it raises."""
    reset = one.reset
    found = [one.power, one.maker, one.boot_mode, one.boot_sources, one.settings_path]
    return [*found, None if reset is None else (reset.path, reset.allowed, reset.info_path)]


@settings(max_examples=400)
@given(
    st.lists(
        st.tuples(st.sampled_from(PLACES), st.sampled_from([*ODD, ...])), min_size=1, max_size=3
    )
)
def test_odd_members_change_what_they_say_themselves_and_nothing_else(
    changes: list[tuple[tuple[str, ...], object]],
) -> None:
    document = dict(WHOLE)
    for path, value in changes:
        if path in set(members_of(document)):
            document = changed(document, path, value)
    found = shown(document)
    assert len(all_of(found)) == 6
    if not any(path[0] == "PowerState" for path, _ in changes):
        assert found.power == "on"
    if not any(path[0] == "Actions" for path, _ in changes):
        assert found.reset is not None
        assert found.reset.path == RESET


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Boot", None),
        ("Manufacturer", 5),
        ("Actions", None),
        ("Actions", {"#ComputerSystem.Reset": {"ResetType@Redfish.AllowableValues": None}}),
        ("Boot", {"BootSourceOverrideTarget@Redfish.AllowableValues": {"not": "a list"}}),
        ("AssetTag", float(1 << 70)),
    ],
)
@pytest.mark.net
def test_one_odd_member_leaves_the_power_readable(tmp_path: Path, name: str, value: object) -> None:
    with fake_service(tmp_path, lambda asked: usual(asked, system(**{name: value}))) as service:
        assert asyncio.run(service.bmc().status()) == "on"


@pytest.mark.net
def test_a_reset_without_its_target_is_where_the_specification_says(tmp_path: Path) -> None:
    actions = {"#ComputerSystem.Reset": {"ResetType@Redfish.AllowableValues": ["On", None]}}
    with fake_service(tmp_path, lambda asked: usual(asked, system(Actions=actions))) as service:
        asyncio.run(service.bmc().power_on())
        assert [one.line for one in service.changes] == [f"POST {RESET}"]


@pytest.mark.net
@pytest.mark.parametrize(
    ("beside", "power"),
    [
        ({"PowerState": "Off", "SystemType": "Physical"}, "on"),
        # It can be told where to boot from: another machine.
        ({"PowerState": "Off", "Boot": {}}, "has 2 systems"),
        (system(), "has 2 systems"),
    ],
    ids=["a board", "a machine that has no reset", "a machine"],
)
def test_of_a_machine_and_a_board_of_accelerators_the_machine_is_asked(
    tmp_path: Path, beside: dict[str, object], power: str
) -> None:
    board = "/redfish/v1/Systems/board"

    def answers(asked: Asked) -> Told:
        if asked.path == SYSTEMS:
            return Told(body={"Members": [{"@odata.id": one} for one in (board, SYSTEM)]})
        return Told(body=beside) if asked.path == board else usual(asked, system())

    with fake_service(tmp_path, answers) as service:
        if power == "on":
            assert asyncio.run(service.bmc().status()) == power
        else:
            with pytest.raises(HapteraError, match=power):
                asyncio.run(service.bmc().status())


@pytest.mark.net
@pytest.mark.parametrize("said", ["PoweringOn", "Paused", None, 1])
def test_a_power_that_is_neither_on_nor_off_is_none(tmp_path: Path, said: object) -> None:
    def answers(asked: Asked) -> Told:
        return usual(asked, system(PowerState=said))

    with (
        fake_service(tmp_path, answers) as service,
        pytest.raises(RedfishError, match="says its power is"),
    ):
        asyncio.run(service.bmc().status())


@pytest.mark.parametrize(
    "content",
    [
        b'\xef\xbb\xbf{"PowerState": "On"}',
        b'{"PowerState": "On", "AssetTag": "\xff\xfe"}',
        b'{"PowerState": "On", "AssetTag": "a\tb\x01"}',
        b'{"PowerState": "On", "Reading": NaN}',
        b'{"PowerState": "On", "Serial": ' + b"9" * 5_000 + b"}",
    ],
)
def test_what_is_not_quite_json_is_read(content: bytes) -> None:
    assert document_of(content).text("PowerState") == "On"


@pytest.mark.parametrize("content", [b"", b"<html>", b"[1]", b"7", b"[" * 100_000, b'{"a"'])
def test_what_is_no_object_has_no_members(content: bytes) -> None:
    assert document_of(content) == Document({})


@given(st.text() | st.sampled_from(["x:http://elsewhere/", "https:elsewhere", "http://[::1", "*"]))
def test_whatever_is_referred_to_is_asked_of_the_service_itself(reference: str) -> None:
    path = path_of(reference, "/redfish/v1/Systems")
    assert path.startswith("/")
    assert path.isascii()
    assert path.isprintable()
    assert " " not in path


def test_half_of_a_character_is_no_text_that_cannot_be_sent_on() -> None:
    found = document_of(b'{"a": "x\\ud800", "b": ["\\udfff"], "c": {"@odata.id": "/\\ud800"}}')
    assert (found.text("a"), found.texts("b")) == ("x?", ["?"])
    assert (found.link("c"), found.links("b")) == ("/?", ["?"])
