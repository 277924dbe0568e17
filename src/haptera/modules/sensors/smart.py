"""The health of disks (SMART), as `smartctl --json` has it of ATA, SCSI and NVMe."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from haptera.modules.kernel_tree import KernelTree
from haptera.sdk import HapteraError, Measured, Reading, Series
from haptera.sdk.commands import Program

failing = Reading("node", "smart.failing", items_max=64, low=0, high=1)
reallocated = Reading("node", "smart.reallocated", unit="sectors", items_max=64, low=0)
pending = Reading("node", "smart.pending", unit="sectors", items_max=64, low=0)
media_errors = Reading("node", "smart.media_errors", unit="errors", items_max=64, low=0)
worn = Reading("node", "smart.worn_percent", unit="%", items_max=64, low=0, high=255)
heat = Reading("node", "smart.temp", unit="°C", items_max=64, low=-60, high=150)

READINGS: Final = (failing, reallocated, pending, media_errors, worn, heat)

TOOL: Final = "smartctl"
BLOCK: Final = "sys/block"
# A controller that hangs takes its own disk's time only.
DISK_S_MAX: Final = 10.0
DISKS_MAX: Final = 64
_DISKS: Final = r"sd[a-z]{1,3}|nvme[0-9]{1,3}n[0-9]{1,3}"
# A disk that sleeps is not woken; its identity says how to ask it.
_WORDS: Final = ("--json=c", "--nocheck=standby", "--info", "--health", "--attributes")
# Attributes of ATA by number: sectors that were replaced, and those that wait for it.
_REALLOCATED, _PENDING = 5, 197


class _Status(msgspec.Struct):
    passed: bool | None = None


class _Raw(msgspec.Struct):
    value: float | None = None


class _Attribute(msgspec.Struct):
    id: int
    raw: _Raw


class _Table(msgspec.Struct):
    table: list[_Attribute] = []


class _Nvme(msgspec.Struct):
    percentage_used: float | None = None
    media_errors: float | None = None


class _Temperature(msgspec.Struct):
    current: float | None = None


class _Answer(msgspec.Struct):
    """The members of an answer that are read; a disk has only some of them."""

    smart_status: _Status = msgspec.field(default_factory=_Status)
    ata_smart_attributes: _Table = msgspec.field(default_factory=_Table)
    nvme_smart_health_information_log: _Nvme = msgspec.field(default_factory=_Nvme)
    scsi_grown_defect_list: float | None = None
    temperature: _Temperature = msgspec.field(default_factory=_Temperature)


async def smart(tree: KernelTree) -> Measured:
    """The numbers of all disks, asked one after the other; none where smartctl is not there."""
    found: dict[Reading | Series, float | None] = {}
    for disk in tree.names(BLOCK, _DISKS)[:DISKS_MAX]:
        try:
            ended = await Program([TOOL, *_WORDS, f"/dev/{disk}"]).run(DISK_S_MAX)
        except TimeoutError:
            continue
        except HapteraError:
            break  # it is not installed, or may not be run
        # Its exit status says in bits what its answer says in words, or that there is none.
        found |= {one.series(disk): value for one, value in numbers_of(ended.out).items()}
    return found


def numbers_of(printed: str) -> Mapping[Reading, float]:
    """The numbers of a disk; none for what is missing or cannot be understood."""
    try:
        answer = msgspec.json.decode(printed, type=_Answer)
    except (ValueError, RecursionError):
        return {}
    return {one: value for one, value in _numbers(answer) if value is not None}


def _numbers(answer: _Answer) -> Iterator[tuple[Reading, float | None]]:
    passed = answer.smart_status.passed
    raw = {one.id: one.raw.value for one in answer.ata_smart_attributes.table}
    yield failing, None if passed is None else float(not passed)
    yield reallocated, raw.get(_REALLOCATED, answer.scsi_grown_defect_list)
    yield pending, raw.get(_PENDING)
    yield media_errors, answer.nvme_smart_health_information_log.media_errors
    yield worn, answer.nvme_smart_health_information_log.percentage_used
    yield heat, answer.temperature.current
