"""The rounds that read the sensors and the event logs of a BMC, within its share of time."""

import asyncio
from typing import Final

from haptera.modules.bmc_sensors import SensorPace
from haptera.modules.kept import keep, kept
from haptera.modules.redfish import event_logs
from haptera.modules.redfish.bmc import RedfishBmc
from haptera.modules.redfish.event_logs import LogsCursor
from haptera.sdk import Measured

# Whole logs are read to find what is new in them: that is not done with each round of sensors.
LOGS_EVERY_S: Final = 60.0

_paces: Final[dict[str, SensorPace]] = {}


async def read_sensors(bmc: RedfishBmc) -> Measured:
    """The numbers of its sensors, and of its event logs as they were last read."""
    return {**await bmc.sensors(), **await _event_logs(bmc)}


async def _event_logs(bmc: RedfishBmc) -> Measured:
    cursor = kept(bmc.events_file, LogsCursor)
    now = asyncio.get_running_loop().time
    pace = _paces.setdefault(str(bmc.events_file), SensorPace())
    if pace.is_due(began := now()):
        after = event_logs.advanced(cursor, await bmc.event_logs())
        pace.spent(began, now(), LOGS_EVERY_S)
        # The counts that are not kept would go back: they are unknown, and the sensors are not.
        cursor = after if after == cursor or keep(bmc.events_file, after) else None
    return {} if cursor is None else event_logs.measured(cursor)
