"""Power of machines through their BMCs, which speak IPMI 2.0 over the network."""

from typing import Final

from haptera.kinds import node
from haptera.kinds.node import Agent, Busy, Netboot, Power
from haptera.modules.ipmi.bmc import GRACEFUL_S_MAX, IpmiBmc, IpmiSettings
from haptera.sdk import ANY, PARENT, Module

# Expensive, so that the planner takes it only where switch_off cannot be.
FORCE_COST: Final = 20
# A reading is two commands at most, each with its retries.
LOOK_S: Final = 20
COMMAND_S: Final = 20

module = Module(
    "ipmi",
    connect=IpmiBmc,
    where={node.platform: "ipmi"},
    context=PARENT,
    settings=IpmiSettings,
    device=node.bmc,
    # Each call is a process of its own.
    at_once=32,
    unique=(node.bmc,),
)
power = module.serves(node.power)
agent = module.serves(node.agent)


@power.look(every_s=5, within_s=LOOK_S, outcomes=(Power.OFF, Power.ON))
async def look_power(bmc: IpmiBmc) -> Power:
    return Power(await bmc.reading())


@power.step(
    Power.OFF,
    Power.ON,
    within_s=COMMAND_S,
    excludes={node.boot_from: node.NETWORK},
)
async def switch_on(bmc: IpmiBmc) -> None:
    await bmc.power_on()


# A machine that boots from the network starts only while the boot servers answer it.
@module.step(
    power.goes(Power.OFF, Power.ON),
    agent.goes(ANY, Agent.UP, expected=True),
    within_s=COMMAND_S,
    requires={node.boot_from: node.NETWORK, node.netboot: Netboot.OFFERED},
)
async def boot(bmc: IpmiBmc) -> None:
    await bmc.boot_from_network_once()
    await bmc.power_on()


@power.step(
    Power.ON,
    Power.OFF,
    within_s=COMMAND_S + GRACEFUL_S_MAX,
    late_s=COMMAND_S,
    excludes={node.busy: Busy.BUSY},
    disruptive=True,
)
async def switch_off(bmc: IpmiBmc) -> None:
    await bmc.power_off()


# For a node that cannot say any more that it is free.
@power.step((Power.ON, Power.HUNG), Power.OFF, within_s=COMMAND_S, cost=FORCE_COST, disruptive=True)
async def force_off(bmc: IpmiBmc) -> None:
    await bmc.force_off()
