"""A cap on what some nodes draw together, or on the temperature of their inlets."""

from collections.abc import Mapping
from typing import Final

from haptera.kinds.rules.rule import OF_BYTES_MAX, parse_rule
from haptera.model.declared.desired_check import between
from haptera.model.declared.schema import Kind, Plain
from haptera.model.errors import Code, HapteraError

LEADS_BYTES_MAX: Final = 256
WATTS_MAX: Final = 1_000_000_000


def _check_whole(values: Mapping[str, str | int]) -> None:
    """See that a cap limits something.

    Raises:
        HapteraError: it does not.
    """
    if not values.keys() & {watts.name, inlet_celsius.name}:
        what, do = "it limits nothing", "set its watts, its inlet_celsius or both"
        raise HapteraError(what, do=do, code=Code.MISSING)


# Without it, all nodes.
of = Plain("power-cap", "of", str, OF_BYTES_MAX, parse_rule)
# Those of them that are lowered last.
leads = Plain("power-cap", "leads", str, LEADS_BYTES_MAX, parse_rule)
watts = Plain("power-cap", "watts", int, 8, between(1, WATTS_MAX))
inlet_celsius = Plain("power-cap", "inlet_celsius", int, 8, between(1, 100))
# The numbers that together are what a node draws, a pattern of names; without it, `bmc.power`.
sensors = Plain("power-cap", "sensors", str, 64)

kind = Kind(
    "power-cap",
    (),
    plain=(of, leads, watts, inlet_celsius, sensors),
    of_cluster=True,
    count_max=1_000,
    whole=_check_whole,
)
