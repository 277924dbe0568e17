"""Bundled modules: users of the SDK, the kinds and what keeps programs; never of each other."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from haptera.sdk import HapteraError, Module

# Where each bundled module is; only those that are used get imported.
BUNDLED: Mapping[str, str] = {
    "cpufreq": "haptera.modules.cpufreq:module",
    "image": "haptera.modules.image.module:module",
    "ipmi": "haptera.modules.ipmi:module",
    "jobs": "haptera.modules.jobs.module:module",
    "labnode": "haptera.modules.labnode:module",
    "libvirt": "haptera.modules.libvirt:module",
    "local": "haptera.modules.local:module",
    "minos": "haptera.modules.minos:module",
    "netboot": "haptera.modules.netboot:module",
    "nvml": "haptera.modules.nvml:module",
    "qemu": "haptera.modules.qemu:module",
    "redfish": "haptera.modules.redfish:module",
    "replica": "haptera.modules.replica.module:module",
    "sensors": "haptera.modules.sensors.module:module",
    "service": "haptera.modules.service.module:module",
    "slurm": "haptera.modules.slurm.module:module",
    "system": "haptera.modules.system.module:module",
}


def load(name: str) -> Module[Any]:
    """The bundled module of this name.

    Raises:
        HapteraError: none has it.
    """
    if name not in BUNDLED:
        raise HapteraError(f"no module is named {name!r}", do=f"use one of {', '.join(BUNDLED)}")
    place, _, attribute = BUNDLED[name].partition(":")
    module: Module[Any] = getattr(import_module(place), attribute)
    return module
