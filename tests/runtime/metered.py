"""A module that measures, and does nothing else."""

from haptera.sdk import Measured, Module, Reading, Target

INLET = Reading("node", "temp.inlet", unit="°C", low=-60, high=200)


def connect(target: Target) -> Target:
    return target


module = Module("meter", connect=connect)


@module.sampler(INLET, every_s=1)
def sensors(target: Target) -> Measured:
    return {INLET: 21.5}
