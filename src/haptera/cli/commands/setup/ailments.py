"""The faults of an installation, decided on observed values, each with its remedy."""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from haptera.cli.commands.setup.machine import InstalledParent

GIB: Final = 1 << 30
FREE_BYTES_MIN: Final = GIB // 4
FREE_BYTES_LOW: Final = 2 * GIB
DAY_S: Final = 86_400
# A parent makes them anew after half a year while it runs, and at each start.
ENDS_SOON_DAYS: Final = 30
SHOWN_MAX: Final = 3


class Ailment(msgspec.Struct, frozen=True):
    """One thing that is wrong, and what mends it; what is not `grave` works for now."""

    what: str
    do: str
    grave: bool = True


def ailments(one: InstalledParent) -> list[Ailment]:
    """All that is wrong, the grave first."""
    found = [ailment for check in CHECKS for ailment in check(one)]
    return sorted(found, key=lambda ailment: not ailment.grave)


def _address(one: InstalledParent) -> Iterator[Ailment]:
    if not one.is_ours:
        what = f"this machine does not have the address {one.address}"
        yield Ailment(what, "ip -brief address, then correct --listen in /etc/haptera/parent.env")


def _ports(one: InstalledParent) -> Iterator[Ailment]:
    for port in one.taken:
        number = port.split()[1]
        what = f"another program has port {port} at {one.address}"
        yield Ailment(what, f"ss -lntup sport = :{number} names it: stop it, or listen elsewhere")


def _clock(one: InstalledParent) -> Iterator[Ailment]:
    if not one.keeps_time:
        what = "nothing keeps the clock of this machine: certificates and history go by it"
        yield Ailment(what, "apt install chrony, or: timedatectl set-ntp true", grave=False)


def _locale(one: InstalledParent) -> Iterator[Ailment]:
    if one.encoding.lower().replace("-", "") != "utf8":
        what = f"texts are {one.encoding} here, not UTF-8: names would be written wrongly"
        yield Ailment(what, "export LC_ALL=C.UTF-8", grave=False)


def _disk(one: InstalledParent) -> Iterator[Ailment]:
    if one.free_bytes < FREE_BYTES_LOW:
        what = f"{one.directory} has {one.free_bytes / GIB:.1f} GiB free"
        do = f"df -h {one.directory}, then make room: without it nothing can be acknowledged"
        yield Ailment(what, do, grave=one.free_bytes < FREE_BYTES_MIN)


def _silent(one: InstalledParent) -> Iterator[Ailment]:
    if one.silent is not None:
        what = f"a parent is there, and is not heard: {one.silent}"
        yield Ailment(what, "journalctl -u haptera-parent, then systemctl restart haptera-parent")


def _unusable(one: InstalledParent) -> Iterator[Ailment]:
    for path, why in one.unusable.items():
        do = "put a backup back: haptera restore FILE; or mend it, while the parent is stopped"
        yield Ailment(f"{path} cannot be used: {why}", do)


def _version(one: InstalledParent) -> Iterator[Ailment]:
    if one.runs is not None and one.runs != one.version:
        what = f"the parent that runs is {one.runs}, and {one.version} is installed"
        yield Ailment(what, "systemctl restart haptera-parent")


def _files(one: InstalledParent) -> Iterator[Ailment]:
    if one.open_files:
        names = ", ".join(map(str, one.open_files[:SHOWN_MAX]))
        state = one.directory / ".haptera"
        yield Ailment(
            f"others can read {names}", f"chmod go-rwx {state}/parent {state}/client.json"
        )
    if one.foreign:
        names = ", ".join(map(str, one.foreign[:SHOWN_MAX]))
        what = f"{names} belongs to another user than the state: the parent may not write it"
        yield Ailment(what, f"chown {one.owner} {' '.join(map(str, one.foreign[:SHOWN_MAX]))}")


def _certificates(one: InstalledParent) -> Iterator[Ailment]:
    for path, at_s in one.ends_s.items():
        left = (at_s - one.now_s) / DAY_S
        if left < ENDS_SOON_DAYS:
            ends = f"ends in {left:.0f} days" if left >= 0 else f"ended {-left:.0f} days ago"
            what = f"the certificate {path} {ends}"
            yield Ailment(what, "systemctl restart haptera-parent makes a new one", grave=left < 0)


def _confined(one: InstalledParent) -> Iterator[Ailment]:
    if one.landlock == 0:
        what = "this kernel has no Landlock: modules can read what their user can"
        yield Ailment(what, "boot Linux 5.13 or later with landlock in lsm=", grave=False)


def _sealed(one: InstalledParent) -> Iterator[Ailment]:
    if not one.sealed:
        what = "secrets and the authority's key are not sealed: a copy of the disk has them"
        do = "give the parent a key: docs/reference/modules.md, Secrets"
        yield Ailment(what, do, grave=False)


CHECKS: Final[tuple[Callable[[InstalledParent], Iterator[Ailment]], ...]] = (
    *(_address, _ports, _clock, _locale, _disk),
    *(_silent, _version, _files, _unusable, _certificates, _confined, _sealed),
)
