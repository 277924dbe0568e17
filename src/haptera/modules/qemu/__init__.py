"""Power of virtual machines that are a QEMU each, on the parent's own machine."""

from haptera.kinds import node
from haptera.modules.power import serve_power
from haptera.modules.qemu.machine import QemuSettings, connect
from haptera.modules.recorders import recording
from haptera.sdk import PARENT, Module, Privilege

module = Module(
    "qemu",
    connect=connect,
    where={node.platform: "qemu"},
    context=PARENT,
    settings=QemuSettings,
    lifespan=recording,
    at_once=32,
    # The processor's own virtualization, and network ports.
    needs=(Privilege.DEVICES,),
)
serve_power(module)
