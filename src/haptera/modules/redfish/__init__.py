"""Power of machines through their BMCs, which speak Redfish: JSON over HTTPS."""

from haptera.kinds import node
from haptera.modules.power import serve_power
from haptera.modules.redfish.bmc import AT_ONCE, RedfishBmc, RedfishSettings, lifespan
from haptera.sdk import PARENT, Module

module = Module(
    "redfish",
    connect=RedfishBmc,
    where={node.platform: "redfish"},
    context=PARENT,
    settings=RedfishSettings,
    lifespan=lifespan,
    device=node.bmc,
    at_once=AT_ONCE,
    unique=(node.bmc,),
)
serve_power(module)
