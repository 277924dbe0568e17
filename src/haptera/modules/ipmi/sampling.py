"""The rounds that read the sensors and the event log of a BMC, within its share of time."""

import asyncio
from typing import Final

from haptera.modules import bmc_sensors
from haptera.modules.effects import DeviceError, LackingError
from haptera.modules.ipmi import event_log
from haptera.modules.ipmi.bmc import IpmiBmc
from haptera.modules.ipmi.event_log import LogCursor
from haptera.modules.ipmi.sensors import sensors_of
from haptera.modules.kept import keep, kept
from haptera.sdk import Measured, Refused

# A BMC with 150 sensors that takes 0.1 s for each. Who looks at the power has to wait for it.
SENSORS_S_MAX: Final = 15.0
# Descriptions of sensors are read anew after this time: new firmware has others.
DESCRIPTIONS_S_MAX: Final = 3_600.0

_described_until: Final[dict[str, float]] = {}


async def read_sensors(bmc: IpmiBmc) -> Measured:
    """The numbers of its sensors, and of its event log."""
    return {**await _sensors(bmc), **await _event_log(bmc)}


async def _sensors(bmc: IpmiBmc) -> Measured:
    """All sensors: what there are is read seldom, for it takes longer than their values."""
    descriptions, now = bmc.home.with_suffix(".sdr"), asyncio.get_running_loop().time()
    try:
        if _described_until.get(bmc.address, now) <= now:
            await bmc.run("sdr", "dump", str(descriptions), within_s=SENSORS_S_MAX)
            _described_until[bmc.address] = now + DESCRIPTIONS_S_MAX
        words = ("-c", "-S", str(descriptions), "sdr", "elist", "full")
        printed = await bmc.run(*words, within_s=SENSORS_S_MAX)
    except LackingError:
        return {}
    except DeviceError:
        # They may be of another firmware.
        _described_until.pop(bmc.address, None)
        raise
    return bmc_sensors.measured(sensors_of(printed))


async def _event_log(bmc: IpmiBmc) -> Measured:
    """The counts of its event log; none of a BMC that has no log."""
    file = bmc.home.with_suffix(".sel")
    cursor = kept(file, LogCursor)
    try:
        info = event_log.info_of(await bmc.run("sel", "info"))
        count = event_log.to_read(cursor, info)
        words = ("sel", "list", "last", str(count))
        printed = "" if count == 0 else await bmc.run(*words, within_s=SENSORS_S_MAX)
    except Refused:
        return {}
    after = event_log.advanced(cursor, info, printed)
    # Counts that are not kept would go back: they are unknown, and the sensors are not.
    return event_log.measured(after) if after == cursor or keep(file, after) else {}
