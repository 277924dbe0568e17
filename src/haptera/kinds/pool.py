"""Instances that follow the queue: what may be had, at which price, how many, for how long."""

import re
from dataclasses import dataclass
from typing import Final

from haptera.model.declared.desired_check import between
from haptera.model.declared.schema import Kind, Plain
from haptera.model.entity import check_name
from haptera.model.errors import HapteraError
from haptera.selectors.nodeset import expand

INSTANCES_MAX: Final = 1_000
SIZES_MAX: Final = 64
SECONDS_MAX: Final = 7 * 24 * 3_600
# Whatever nodes of the site are switched on and off as needed, instead of instances of a provider.
MACHINES: Final = "machines"


@dataclass(frozen=True, slots=True)
class InstanceSize:
    """One size that a pool may have: its price is in whatever unit all prices of a pool are.

    What lacks capacity may lack it for a whole `family`.
    """

    name: str
    price: float
    cpus: int
    memory_mb: int
    family: str = ""


def parse_sizes(text: str) -> tuple[InstanceSize, ...]:
    """`NAME: N cpus, N MB, price N`, further ones behind semicolons; `family NAME` may be added.

    >>> parse_sizes("small: 1 cpus, 512 MB, price 0.1; large: 8 cpus, 4096 MB, price 1")[1].cpus
    8

    Raises:
        HapteraError: that is no list of sizes, or one is there twice.
    """
    sizes = tuple(_size(one) for one in text.split(";") if one.strip())
    names = [one.name for one in sizes]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise HapteraError(f"size {twice[0]} is there twice", do="write it once")
    if not 0 < len(sizes) <= SIZES_MAX:
        raise HapteraError(f"a pool has 1 to {SIZES_MAX} sizes, not {len(sizes)}", do=_DO)
    return sizes


def _size(text: str) -> InstanceSize:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise HapteraError(f"{text.strip()[:80]!r} is not a size", do=_DO)
    cpus, memory_mb = int(found["cpus"]), int(found["memory"])
    if cpus == 0 or memory_mb == 0:
        raise HapteraError(f"size {found['name']} has room for nothing", do=_DO)
    name = check_name(found["name"])
    return InstanceSize(name, float(found["price"]), cpus, memory_mb, found["family"] or "")


_DO: Final = "write small: 1 cpus, 512 MB, price 0.1; large: 8 cpus, 4096 MB, price 1, family x"
_NUMBER: Final = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
_SIZE: Final = re.compile(
    r"(?P<name>\S+)\s*:\s*(?P<cpus>[0-9]{1,6})\s+cpus?\s*,\s*(?P<memory>[0-9]{1,9})\s+MB\s*,"
    rf"\s*price\s+(?P<price>{_NUMBER})(?:\s*,\s*family\s+(?P<family>[A-Za-z0-9._-]{{1,64}}))?"
)


def parse_factor(text: str) -> float:
    """A number from 1 to 1000, such as `1.5`.

    Raises:
        HapteraError: it is none.
    """
    if re.fullmatch(_NUMBER, text) is None or not 1 <= float(text) <= 1000:
        raise HapteraError(f"{text!r} is not a factor", do="write a number from 1 to 1000, as 1.5")
    return float(text)


# The module that makes its instances, or `machines`.
provider = Plain("pool", "provider", str, 32, check_name)
# Where that provider is asked, as its module understands it.
at = Plain("pool", "at", str, 128)
sizes = Plain("pool", "sizes", str, 480, parse_sizes)
# Of `machines`: which of the site's nodes.
nodes = Plain("pool", "nodes", str, 96, expand)
# How many there always are, and how many at most.
least = Plain("pool", "min", int, 8, between(0, INSTANCES_MAX))
most = Plain("pool", "max", int, 8, between(1, INSTANCES_MAX))
# How many times the cheapest size that would do may cost, where that one is not to be had.
price_factor = Plain("pool", "price_factor", str, 16, parse_factor)
# How long one may be idle before it is drained, and how long it may take to come up.
idle_s = Plain("pool", "idle_s", int, 8, between(0, SECONDS_MAX))
boot_s = Plain("pool", "boot_s", int, 8, between(1, SECONDS_MAX))

kind = Kind(
    "pool",
    (),
    plain=(provider, at, sizes, nodes, least, most, price_factor, idle_s, boot_s),
    of_cluster=True,
    count_max=1_000,
)
