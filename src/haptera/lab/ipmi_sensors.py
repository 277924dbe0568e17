"""Analog sensors of a simulated BMC, whose values are in files, as commands of ipmi_sim."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# A log of so many records; flags say that its entries can be deleted and reserved (table 31-2).
SEL_COMMAND: Final = "sel_enable 0x20 200 0x0a"
POLL_MS: Final = 1_000
# Turns a minute for one step of a fan's raw value.
FAN_STEP: Final = 40
_CELSIUS, _RPM = 0x01, 0x12
_TEMPERATURE, _FAN = 0x01, 0x04
# Of 15 events that a sensor can have, none.
_NONE: Final = "0" * 15


@dataclass(frozen=True, slots=True)
class AnalogSensor:
    """A sensor of one byte times `step`; the byte is in `file`, without which it has no reading."""

    name: str
    file: Path | None
    sort: int
    unit: int
    step: int = 1

    @classmethod
    def of_temperature(cls, name: str, file: Path | None) -> "AnalogSensor":
        return cls(name, file, _TEMPERATURE, _CELSIUS)

    @classmethod
    def of_fan(cls, name: str, file: Path | None) -> "AnalogSensor":
        return cls(name, file, _FAN, _RPM, FAN_STEP)


def sensor_commands(sensors: Iterable[AnalogSensor]) -> Iterator[str]:
    """The commands that give a BMC these sensors."""
    for number, one in enumerate(sensors, start=1):
        if one.file is not None:
            yield f'sensor_add 0x20 0 {number} {one.sort:#x} 0x01 poll {POLL_MS} file "{one.file}"'
            yield f"sensor_set_event_support 0x20 0 {number} enable scanning none {_all_four()}"
        record = " ".join(f"{byte:#04x}" for byte in _record(number, one))
        yield f"main_sdr_add 0x20 {record}"


def _all_four() -> str:
    return " ".join([_NONE] * 4)


def _record(number: int, one: AnalogSensor) -> bytes:
    """A full sensor record (IPMI 2.0, table 43-1): linear, unsigned, without thresholds."""
    name = one.name.encode("ascii")
    key = bytes([0x20, 0x00, number])
    # The system board; scanned and initialized; a threshold sensor that is read as it is.
    body = bytes([7, 1, 0x7F, 0x68, one.sort, 0x01, *bytes(6), 0x00, one.unit, 0x00, 0x00])
    factors = bytes([one.step, 0, 0, 0, 0, 0])
    rest = bytes([0, 0, 0, 0, 0xFF, *bytes(12)])
    text = bytes([0xC0 | len(name)]) + name
    record = key + body + factors + rest + text
    return bytes([0, 0, 0x51, 0x01, len(record)]) + record
