"""Power and sensors of machines through their BMCs, which speak IPMI 2.0 over the network."""

from functools import partial

from haptera.kinds import node
from haptera.modules import bmc_sensors
from haptera.modules.bmc_sensors import ROUND_S_MAX, measure
from haptera.modules.ipmi import event_log
from haptera.modules.ipmi.bmc import IpmiBmc, IpmiSettings
from haptera.modules.ipmi.consoles import connect
from haptera.modules.ipmi.sampling import read_sensors
from haptera.modules.power import serve_power
from haptera.modules.recorders import recording
from haptera.sdk import PARENT, Measured, Module

module = Module(
    "ipmi",
    connect=connect,
    where={node.platform: "ipmi"},
    context=PARENT,
    settings=IpmiSettings,
    lifespan=recording,
    device=node.bmc,
    # Each call is a process of its own.
    at_once=32,
    unique=(node.bmc,),
)
serve_power(module)


@module.sampler(*bmc_sensors.READINGS, *event_log.READINGS, every_s=10, within_s=ROUND_S_MAX)
async def sensors(bmc: IpmiBmc) -> Measured:
    return await measure(bmc, partial(read_sensors, bmc))
