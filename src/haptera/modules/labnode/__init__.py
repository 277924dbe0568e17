"""Power and boot of a lab's virtual nodes, through the small BMC that each of them has."""

from collections.abc import AsyncIterator
from typing import Final

from haptera.kinds import node
from haptera.kinds.node import Agent, Busy, Power
from haptera.modules.labnode.bmc import Bmc
from haptera.sdk import ANY, PARENT, EnrolmentLevel, Module

# Dear, so that it is taken only where switch_off cannot be.
FORCE_COST: Final = 20

module = Module(
    "labnode",
    connect=Bmc,
    where={node.platform: "labnode"},
    context=PARENT,
    unique=(node.bmc,),
    enrolment=EnrolmentLevel.OUT_OF_BAND,
)
power = module.serves(node.power)
agent = module.serves(node.agent)


@power.look(every_s=2, within_s=2, outcomes=(Power.OFF, Power.ON))
async def look_power(bmc: Bmc) -> Power:
    return Power(await bmc.power())


@power.watch
async def watch_power(bmc: Bmc) -> AsyncIterator[Power]:
    async for name in bmc.events():
        yield Power(name)


@module.step(
    power.goes(Power.OFF, Power.ON),
    agent.goes(ANY, Agent.UP, expected=True),
    within_s=2,
    late_s=2,
    enrols=True,
)
async def switch_on(bmc: Bmc) -> None:
    await bmc.command("on")


@power.step(
    Power.ON,
    Power.OFF,
    within_s=2,
    late_s=2,
    excludes={node.busy: Busy.BUSY},
    disruptive=True,
)
async def switch_off(bmc: Bmc) -> None:
    await bmc.command("off")


# For a node that cannot say any more that it is free; that nothing runs there, a permit says, or
# that it is down.
@power.step(
    (Power.ON, Power.HUNG), Power.OFF, within_s=2, late_s=2, cost=FORCE_COST, disruptive=True
)
async def force_off(bmc: Bmc) -> None:
    await bmc.command("off")
