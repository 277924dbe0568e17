"""Machines without an offer: who is remembered, for how long, and who gives way."""

from pathlib import Path

import pytest

from haptera.modules.netboot import dhcp
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.strangers import (
    FORGOTTEN_S,
    REMEMBERED_MAX,
    STRANGERS_MAX,
    Stranger,
    Strangers,
    read_strangers,
    strangers_file,
)
from haptera.sdk import HapteraError

MAC = bytes.fromhex("525400000001")


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def strangers(tmp_path: Path, clock: Clock) -> Strangers:
    strangers_file(tmp_path).parent.mkdir()
    return Strangers(strangers_file(tmp_path), clock)


def discover(mac: bytes, **options: bytes) -> DhcpMessage:
    names = {"architecture": dhcp.ARCHITECTURE, "vendor": dhcp.VENDOR_CLASS}
    said = {names[name]: value for name, value in options.items()}
    return DhcpMessage(dhcp.REQUEST, 1, mac, {dhcp.MESSAGE_TYPE: b"\1", **said})


def test_what_a_machine_says_of_itself_is_written_down(
    strangers: Strangers, clock: Clock, tmp_path: Path
) -> None:
    assert strangers.hear(discover(MAC))
    clock.now_s += 4
    assert not strangers.hear(discover(MAC, architecture=b"\0\7", vendor=b"PXE\xff\n" + b"x" * 200))
    strangers.save()
    assert read_strangers(tmp_path) == [
        Stranger("52:54:00:00:00:01", "UEFI x86-64", f"PXE??{'x' * 59}", 2, 1_000.0, 1_004.0)
    ]


def test_who_is_silent_for_long_is_forgotten(
    strangers: Strangers, clock: Clock, tmp_path: Path
) -> None:
    strangers.hear(discover(MAC))
    strangers.save()
    clock.now_s += FORGOTTEN_S + 1
    strangers.save()
    assert read_strangers(tmp_path) == []


def test_a_machine_that_asks_again_outlives_a_flood_of_made_up_ones(
    strangers: Strangers, tmp_path: Path
) -> None:
    strangers.hear(discover(MAC))
    strangers.hear(discover(MAC))
    new = [strangers.hear(discover(number.to_bytes(6, "big"))) for number in range(10_000)]
    strangers.save()
    told = read_strangers(tmp_path)
    assert len(told) == STRANGERS_MAX
    assert MAC.hex(":") in {one.mac for one in told}
    assert sum(new) == STRANGERS_MAX - 1


# When firmware asks, in seconds: with the pauses of RFC 2131, and in a hurry as loaders do.
@pytest.mark.parametrize("asks_at_s", [[0, 4, 12, 28], [0, 1, 3, 7, 15], [20], [38]])
@pytest.mark.parametrize("made_up", [STRANGERS_MAX, 4 * STRANGERS_MAX])
def test_a_machine_is_shown_before_made_up_ones_that_ask_all_the_time(
    made_up: int, asks_at_s: list[int], strangers: Strangers, clock: Clock, tmp_path: Path
) -> None:
    for second in range(40):
        if second in asks_at_s:
            strangers.hear(discover(MAC))
        for number in range(made_up):
            strangers.hear(discover(number.to_bytes(6, "big")))
        clock.now_s += 1
    strangers.save()
    assert MAC.hex(":") in {one.mac for one in read_strangers(tmp_path)}


def test_a_machine_that_asks_again_outlives_more_made_up_ones_than_are_remembered(
    strangers: Strangers, clock: Clock, tmp_path: Path
) -> None:
    for at in range(3 * REMEMBERED_MAX):
        if at in (0, REMEMBERED_MAX // 4, REMEMBERED_MAX):
            strangers.hear(discover(MAC))
        strangers.hear(discover(at.to_bytes(6, "big")))
        clock.now_s += 1e-3
    strangers.save()
    shown = read_strangers(tmp_path)
    assert len(shown) == STRANGERS_MAX
    assert MAC.hex(":") in {one.mac for one in shown}


def test_a_file_that_is_none_of_its_own_is_named(strangers: Strangers, tmp_path: Path) -> None:
    assert read_strangers(tmp_path) == []
    strangers_file(tmp_path).write_text("no json")
    with pytest.raises(HapteraError, match="cannot be read") as found:
        read_strangers(tmp_path)
    assert found.value.where == str(strangers_file(tmp_path))
