"""Power and sensors of machines through their BMCs, which speak Redfish: JSON over HTTPS."""

from functools import partial

from haptera.kinds import node
from haptera.modules import bmc_sensors
from haptera.modules.bmc_sensors import ROUND_S_MAX, measure
from haptera.modules.power import serve_power
from haptera.modules.redfish.bmc import AT_ONCE, RedfishBmc, RedfishSettings, lifespan
from haptera.modules.redfish.sampling import read_sensors
from haptera.sdk import PARENT, Measured, Module

module = Module(
    "redfish",
    connect=RedfishBmc,
    where={node.platform: "redfish"},
    context=PARENT,
    settings=RedfishSettings,
    lifespan=lifespan,
    device=node.bmc,
    at_once=AT_ONCE,
    unique=(node.bmc,),
)
serve_power(module)


@module.sampler(*bmc_sensors.READINGS, bmc_sensors.events, every_s=10, within_s=ROUND_S_MAX)
async def sensors(bmc: RedfishBmc) -> Measured:
    return await measure(bmc, partial(read_sensors, bmc))
