"""Event logs of Redfish services: what is new is counted once, in whatever order it is listed."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from haptera.lab.redfish_bmc import SESSIONS_PATH
from haptera.modules.redfish import module, sampling
from haptera.modules.redfish.bmc import RedfishBmc
from haptera.modules.redfish.documents import Document
from haptera.modules.redfish.event_logs import (
    ENTRIES_MAX,
    LOGS_MAX,
    LogsCursor,
    advanced,
    logs_of,
    measured,
)
from tests.modules.redfish.fake_service import SYSTEM, SYSTEMS, Asked, Told, fake_service
from tests.modules.test_sensors import numbers_of

SERVICES: Final = f"{SYSTEM}/LogServices"
SEL: Final = f"{SERVICES}/SEL"
ENTRIES: Final = f"{SEL}/Entries"
EXPANDED: Final = f"{ENTRIES}?$expand=.($levels=1)"
Resources = Mapping[str, Mapping[str, Any]]
LOGGED: Final[dict[str, Any]] = {"LogServices": {"@odata.id": SERVICES}}
ONE_LOG: Final[dict[str, Any]] = {
    SERVICES: {"Members": [{"@odata.id": SEL}]},
    SEL: {"Entries": {"@odata.id": ENTRIES}},
}


def entry(number: int, severity: str = "Critical", at: str = "T1", **more: str) -> dict[str, str]:
    path = f"{ENTRIES}/{number}"
    return {"@odata.id": path, "Id": str(number), "Created": at, "Severity": severity, **more}


def holding(*entries: Mapping[str, Any]) -> Resources:
    return {**ONE_LOG, ENTRIES: {"Members": [*entries]}}


def read(cursor: LogsCursor | None, resources: Resources) -> LogsCursor:
    def at(path: str) -> Document | None:
        return Document(resources[path]) if path in resources else None

    return advanced(cursor, [*logs_of(at, Document(LOGGED), SYSTEM)])


def counts(*rounds: Resources) -> dict[str, float]:
    """The counts after these rounds, with the cursor kept between them."""
    cursor: LogsCursor | None = None
    for one in rounds:
        cursor = read(cursor, one)
    return {} if cursor is None else numbers_of(module, measured(cursor))


def critical(*rounds: Resources) -> float | None:
    return counts(*rounds).get("sel.events[Critical]")


def test_what_a_log_held_at_first_is_history_and_what_comes_is_counted_once() -> None:
    old, new = entry(1), entry(2)
    assert counts(holding(old)) == {"sel.events[Critical]": 0, "sel.events[Warning]": 0}
    assert critical(holding(), holding(old), holding(old)) == 1
    # Some list the newest first.
    assert critical(holding(old), holding(new, old), holding(old, new)) == 1


def test_a_log_that_was_cleared_is_counted_from_its_beginning() -> None:
    again = entry(1, at="T9")
    assert critical(holding(entry(1), entry(2)), holding(again)) == 1
    # The clock went back with it: the time says nothing of the order.
    assert critical(holding(entry(1, at="T9")), holding(entry(1, at="T0"))) == 1
    assert critical(holding(entry(1), entry(2)), holding(), holding(again)) == 1


def test_one_entry_that_is_deleted_counts_no_other_again() -> None:
    assert critical(holding(entry(1), entry(2), entry(3)), holding(entry(1), entry(3))) == 0


def test_events_that_are_well_or_have_gone_are_not_counted() -> None:
    well, gone = entry(1, "OK"), entry(2, EntryCode="Deassert")
    warned, nameless = entry(3, "Warning"), entry(4, "Fine")
    found = counts(holding(), holding(well, gone, warned, nameless, entry(5)))
    assert found == {"sel.events[Critical]": 1, "sel.events[Warning]": 1}


def pages(*some: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {**ONE_LOG}
    for number, entries in enumerate(some):
        path = ENTRIES if number == 0 else f"{ENTRIES}?$skip={number}"
        following = {"Members@odata.nextLink": f"{ENTRIES}?$skip={number + 1}"}
        found[path] = {"Members": entries, **(following if number + 1 < len(some) else {})}
    return found


def test_of_a_log_that_is_read_in_part_nothing_is_counted_twice() -> None:
    whole = pages([entry(1)], [entry(2)], [entry(3)])
    part = {path: one for path, one in whole.items() if "skip=2" not in path}
    assert critical(whole, part, whole) == 0
    assert critical(holding(), whole, part, whole) == 3


def test_a_log_whose_first_reading_broke_off_is_not_known_yet() -> None:
    whole = pages([entry(1)], [entry(2)], [entry(3)])
    part = {path: one for path, one in whole.items() if "skip=2" not in path}
    assert counts(part) == {}
    # All of it is history once it was read; what comes after is not.
    assert critical(part, whole) == 0
    assert critical(part, whole, pages([entry(1)], [entry(2)], [entry(3), entry(4)])) == 1


def test_pages_of_links_only_are_expanded_beside_what_else_is_asked() -> None:
    found = pages([entry(1)], [])
    found[f"{ENTRIES}?$skip=1"] = {"Members": [{"@odata.id": f"{ENTRIES}/2"}]}
    found[f"{ENTRIES}?$skip=1&$expand=.($levels=1)"] = {"Members": [entry(2)]}
    assert critical(holding(), found) == 2


def test_a_service_whose_logs_have_other_paths_each_time_fills_no_file() -> None:
    cursor: LogsCursor | None = None
    for number in range(5 * LOGS_MAX):
        entries = f"{SEL}/Entries{number}"
        services = {SERVICES: ONE_LOG[SERVICES], SEL: {"Entries": {"@odata.id": entries}}}
        cursor = read(cursor, {**services, entries: {"Members": [entry(1)]}})
    assert cursor is not None
    assert [*cursor.logs] == [f"{SEL}/Entries{n}" for n in range(4 * LOGS_MAX, 5 * LOGS_MAX)]


def test_entries_that_are_links_only_are_asked_for_whole() -> None:
    links = {ENTRIES: {"Members": [{"@odata.id": f"{ENTRIES}/1"}]}}
    assert critical(holding(), {**ONE_LOG, **links, EXPANDED: {"Members": [entry(1)]}}) == 1
    # Where that cannot be had, nothing is known of them: they are no events, and no history.
    assert critical(holding(), {**ONE_LOG, **links}, holding(entry(1))) == 1
    # Some ignore that they are asked for more.
    assert counts({**ONE_LOG, **links, EXPANDED: links[ENTRIES]}) == {}


def test_a_system_without_logs_and_a_log_that_is_off_have_no_numbers() -> None:
    off = {**ONE_LOG, SEL: {**ONE_LOG[SEL], "ServiceEnabled": False}}
    assert [counts(one) for one in ({}, {SERVICES: {}}, off)] == [{}, {}, {}]


def test_a_log_without_end_is_read_to_a_limit() -> None:
    endless = {"Members": [entry(n) for n in range(999)], "Members@odata.nextLink": ENTRIES}
    cursor = read(None, {**ONE_LOG, ENTRIES: endless})
    assert [len(keys) for keys in cursor.logs.values()] == [999]
    many = holding(*(entry(number) for number in range(2 * ENTRIES_MAX)))
    assert [len(keys) for keys in read(None, many).logs.values()] == [ENTRIES_MAX]


def warm(*entries: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """A service whose system has an inlet of 21 °C and a log."""
    chassis = f"{SYSTEM}/Chassis"
    linked = {"Links": {"Chassis": [{"@odata.id": chassis}]}}
    return {
        SYSTEMS: {"Members": [{"@odata.id": SYSTEM}]},
        SYSTEM: {"PowerState": "On", **LOGGED, **linked},
        chassis: {"Thermal": {"@odata.id": f"{chassis}/Thermal"}},
        f"{chassis}/Thermal": {"Temperatures": [{"Name": "Inlet", "ReadingCelsius": 21}]},
        **holding(*entries),
    }


@pytest.mark.net
def test_a_full_disk_costs_the_counts_of_events_and_not_the_sensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "_paces", {})
    resources = warm(entry(1))
    with fake_service(tmp_path, lambda asked: _at(asked, resources)) as service:
        bmc = service.bmc()
        # No file can be made there.
        bmc.events_file = tmp_path / "none" / "events"
        found = numbers_of(module, asyncio.run(sampling.read_sensors(bmc)))
    assert found == {"bmc.temp.inlet": 21}


@pytest.mark.net
@pytest.mark.parametrize("auth", ["basic", "session"])
@pytest.mark.parametrize("refused", [SERVICES, SEL, ENTRIES, "/redfish/v1/Chassis"])
def test_a_resource_that_a_user_may_not_read_costs_neither_the_sensors_nor_the_power(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str, auth: str
) -> None:
    """Some services answer for want of a privilege as for want of a login."""
    monkeypatch.setattr(sampling, "_paces", {})
    opened = Told(201, headers={"X-Auth-Token": "token", "Location": f"{SESSIONS_PATH}/1"})

    def answers(asked: Asked) -> Told:
        if asked.path == SESSIONS_PATH:
            return opened
        return Told(401) if asked.path == refused else _at(asked, warm())

    with fake_service(tmp_path, answers) as service:
        bmc = service.bmc(auth=auth)
        found = numbers_of(module, asyncio.run(sampling.read_sensors(bmc)))
        assert found["bmc.temp.inlet"] == 21
        assert (counts(holding()).keys() <= found.keys()) is (refused == "/redfish/v1/Chassis")
        assert asyncio.run(bmc.status()) == "on"


def _at(asked: Asked, resources: Resources) -> Told:
    found = resources.get(asked.path)
    return Told(404) if found is None else Told(body=found)


@pytest.mark.net
def test_counts_outlive_the_process_that_made_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [entry(1)]

    def answers(asked: Asked) -> Told:
        return _at(asked, warm(*entries))

    async def a_round(bmc: RedfishBmc) -> dict[str, float]:
        return numbers_of(module, await sampling.read_sensors(bmc))

    found = []
    with fake_service(tmp_path, answers) as service:
        for number in (2, 3):
            monkeypatch.setattr(sampling, "_paces", {})  # as in a process that has just begun
            found.append(asyncio.run(a_round(service.bmc())))
            entries.append(entry(number))
            # It is not read again so soon.
            found.append(asyncio.run(a_round(service.bmc())))
    assert [one["sel.events[Critical]"] for one in found] == [0, 0, 1, 1]
