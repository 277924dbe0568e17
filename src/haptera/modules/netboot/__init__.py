"""Starts machines from the network: DHCP, TFTP and HTTP for those whose boot is under way."""

from haptera.kinds import node
from haptera.kinds.node import Netboot, Power
from haptera.modules.netboot.content import NetbootSettings
from haptera.modules.netboot.servers import Booting, booting
from haptera.sdk import ANY, PARENT, Applied, Module, Privilege

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
booted = module.serves(node.booted)
bootable = module.serves(node.bootable)


@netboot.look(every_s=5, within_s=5, outcomes=(Netboot.CLOSED, Netboot.OFFERED))
async def look_netboot(one: Booting) -> Netboot:
    return Netboot.OFFERED if one.is_offered() else Netboot.CLOSED


# Nothing is offered to a machine that runs: it would be another one that takes it.
@module.step(
    netboot.goes(Netboot.CLOSED, Netboot.OFFERED),
    booted.goes(ANY, Applied.CURRENT, expected=True),
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


# It is desired with `booted`, and no step leads to it: without the files there is no chain, and no
# machine is switched off, nor on, for a boot that would fail.
@bootable.look(every_s=5, within_s=5, outcomes=(Applied.STALE, Applied.CURRENT))
async def look_bootable(one: Booting) -> str:
    missing = one.missing()
    if missing is not None:
        one.target.note(missing)
    return one.target.digest if missing is None else Applied.STALE
