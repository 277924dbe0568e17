"""The health of disks (SMART), as `smartctl --json` has it of ATA, SCSI and NVMe."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from haptera.modules.kernel_tree import KernelTree
from haptera.sdk import (
    Foreign,
    HapteraError,
    Measured,
    Reading,
    Series,
    if_readable,
    read_foreign,
)
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
_NVME: Final = "nvme_smart_health_information_log"


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
    told = if_readable(lambda: read_foreign(TOOL, printed.encode()))
    if told is None:
        return {}
    answers = {one: if_readable(partial(ask, told)) for one, ask in _QUESTIONS.items()}
    return {one: value for one, value in answers.items() if value is not None}


def _failing(told: Foreign) -> float | None:
    passed = told["smart_status"]["passed"].value
    return float(not passed) if isinstance(passed, bool) else None


def _reallocated(told: Foreign) -> float | None:
    of_ata = if_readable(lambda: _raw(told, _REALLOCATED))
    return told["scsi_grown_defect_list"].figure() if of_ata is None else of_ata


def _raw(told: Foreign, attribute: int) -> float | None:
    rows = told["ata_smart_attributes"]["table"].items()
    here = (one for one in rows if if_readable(partial(_number_of, one)) == attribute)
    return next((one["raw"]["value"].figure() for one in here), None)


def _number_of(row: Foreign) -> int | None:
    return row["id"].number()


_QUESTIONS: Final[Mapping[Reading, Callable[[Foreign], float | None]]] = {
    failing: _failing,
    reallocated: _reallocated,
    pending: lambda told: _raw(told, _PENDING),
    media_errors: lambda told: told[_NVME]["media_errors"].figure(),
    worn: lambda told: told[_NVME]["percentage_used"].figure(),
    heat: lambda told: told["temperature"]["current"].figure(),
}
