"""Power of virtual machines that a libvirt keeps, there or elsewhere."""

from haptera.kinds import node
from haptera.modules.libvirt.domain import LibvirtSettings, connect
from haptera.modules.power import serve_power
from haptera.modules.recorders import recording
from haptera.sdk import PARENT, Module, Privilege

module = Module(
    "libvirt",
    connect=connect,
    where={node.platform: "libvirt"},
    context=PARENT,
    settings=LibvirtSettings,
    lifespan=recording,
    # Each call is a process of its own.
    at_once=32,
    unique=(node.bmc,),
    # Who may manage domains is whom libvirt takes for its administrator.
    needs=(Privilege.ROOT,),
)
serve_power(module)
