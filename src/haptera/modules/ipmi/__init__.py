"""Power of machines through their BMCs, which speak IPMI 2.0 over the network."""

from haptera.kinds import node
from haptera.modules.ipmi.bmc import IpmiSettings
from haptera.modules.ipmi.consoles import connect
from haptera.modules.power import serve_power
from haptera.modules.recorders import recording
from haptera.sdk import PARENT, Module

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
