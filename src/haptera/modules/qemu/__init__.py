"""Power of virtual machines that are a QEMU each, on the parent's own machine."""

from haptera.kinds import node
from haptera.modules.power import serve_power
from haptera.modules.qemu.machine import QemuMachine, QemuSettings
from haptera.sdk import PARENT, Module, Privilege

module = Module(
    "qemu",
    connect=QemuMachine,
    where={node.platform: "qemu"},
    context=PARENT,
    settings=QemuSettings,
    at_once=32,
    # The processor's own virtualization, and network ports.
    needs=(Privilege.DEVICES,),
)
serve_power(module)
