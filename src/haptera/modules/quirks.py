"""What BMCs do otherwise than their protocols say, as data: by their maker, or as a site says."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from haptera.kinds import node
from haptera.sdk import HapteraError, Target


class Quirk(StrEnum):
    """One way of being different; the attribute `bmc_quirks` of a node names them."""

    # IPMI: to boot from the network, it has the machine start as with a BIOS, unless UEFI is named.
    UEFI_BOOT = "uefi-boot"
    # Redfish: it falls back to another mode of booting, unless the mode is named with the device.
    BOOT_MODE = "boot-mode"
    # It takes the order to shut down, and the operating system never hears of it.
    NO_SHUTDOWN = "no-shutdown"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a maker's BMCs, and who says so; `maker` is how its name begins."""

    maker: str
    quirk: Quirk
    source: str


KNOWN: Final = (Known("supermicro", Quirk.BOOT_MODE, "github.com/DMTF/Redfishtool/pull/106"),)


def quirks_of(target: Target) -> AbstractSet[Quirk]:
    """Those that the site names for a node.

    Raises:
        HapteraError: it names one that nobody knows.
    """
    names = target.attributes.get(node.bmc_quirks.name, "").replace(",", " ").split()
    try:
        return frozenset(Quirk(name) for name in names)
    except ValueError as error:
        do = f"choose from {', '.join(Quirk)}"
        raise HapteraError(f"bmc_quirks: {error}", where=str(target.entity), do=do) from None


def quirks_by(maker: str) -> AbstractSet[Quirk]:
    """Those of all BMCs of a maker, by the name that they give it.

    >>> [*quirks_by("Supermicro"), *quirks_by("ACME")]
    [<Quirk.BOOT_MODE: 'boot-mode'>]
    """
    return frozenset(one.quirk for one in KNOWN if maker.lower().startswith(one.maker))
