"""Power of virtual machines that a libvirt keeps, there or elsewhere."""

from collections.abc import Mapping

from haptera.kinds import node
from haptera.modules.libvirt.domain import LibvirtDomain, LibvirtSettings, connect, statuses
from haptera.modules.power import Powers, look_powers, serve_power
from haptera.modules.recorders import recording
from haptera.sdk import PARENT, EntityId, Module, Privilege

module = Module(
    "libvirt",
    connect=connect,
    where={node.platform: "libvirt"},
    context=PARENT,
    settings=LibvirtSettings,
    lifespan=recording,
    # Of so many the power is read at once, by one process.
    at_once=256,
    unique=(node.bmc,),
    # Who may manage domains is whom libvirt takes for its administrator.
    needs=(Privilege.ROOT,),
)


async def look_power(domains: Mapping[EntityId, LibvirtDomain]) -> Powers:
    """The power of each domain; a change counts once two readings agree on it."""
    return await look_powers(domains, statuses)


serve_power(module, look_power)
