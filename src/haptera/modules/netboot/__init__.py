"""Starts machines from the network: DHCP, TFTP and HTTP for those whose boot is under way."""

from haptera.kinds import node
from haptera.kinds.node import Netboot, Power
from haptera.modules.netboot.content import NetbootSettings
from haptera.modules.netboot.servers import Booting, booting
from haptera.sdk import PARENT, Module, Privilege

module = Module(
    "netboot",
    connect=booting,
    where={node.boot_from: node.NETWORK},
    context=PARENT,
    settings=NetbootSettings,
    unique=(node.mac, node.address),
    needs=(Privilege.PORTS, Privilege.RAW_SOCKETS),
)
netboot = module.serves(node.netboot)


@netboot.look(every_s=5, within_s=5, outcomes=(Netboot.CLOSED, Netboot.OFFERED))
async def look_netboot(one: Booting) -> Netboot:
    return Netboot.OFFERED if one.is_offered() else Netboot.CLOSED


# Nothing is offered to a machine that runs: it would be another one that takes it.
@netboot.step(
    Netboot.CLOSED,
    Netboot.OFFERED,
    within_s=5,
    late_s=1,
    requires={node.power: Power.OFF},
    enrols=True,
)
async def offer(one: Booting) -> None:
    one.offer()


@netboot.step(Netboot.OFFERED, Netboot.CLOSED, within_s=5, late_s=1)
async def withdraw(one: Booting) -> None:
    one.withdraw()
