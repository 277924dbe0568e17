"""What a machine is given to boot, made before it is switched on: a missing file stops there."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Interface
from pathlib import Path
from typing import Final, Literal

import msgspec

from haptera.kinds import node
from haptera.modules.netboot.answers import SCRIPT
from haptera.modules.netboot.offers import BootOffer, Here
from haptera.modules.regular import is_regular
from haptera.sdk import Boot, Command, HapteraError, HostPath, Target
from haptera.sdk.owned_files import owned

KERNEL: Final = "kernel"
INITRAMFS: Final = "initramfs"
INVITATION: Final = "invitation"
CLOCK: Final = "clock"
FOLDER: Final = "minos"
_NONCE_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Architecture:
    """What machines of one kind start: loaders by what firmware says (RFC 4578), and a folder.

    `native` is for an iPXE in firmware, with drivers of its own: by that of the firmware, whose
    services are made for small programs, an initramfs takes half a minute. In the folder of the
    minOS `minos` is that of this kind. `ipxe` and `built` say where each comes from, `{name}` is
    the option that names the minOS. `serial` is the first serial line, as Linux names it.
    """

    loaders: Mapping[int, str]
    native: Mapping[int, str]
    minos: str
    ipxe: str
    built: str
    serial: str


# Of UEFI those from 15 on boot by HTTP.
_UEFI: Final = "snponly.efi"
_UEFI_ARM64: Final = "ipxe-arm64.efi"
ARCHITECTURES: Final = {
    "x86-64": Architecture(
        {0: "undionly.kpxe", 7: _UEFI, 9: _UEFI, 16: _UEFI},
        {0: "ipxe.pxe", 7: "ipxe.efi", 9: "ipxe.efi"},
        minos="",
        ipxe="apt install ipxe",
        built="haptera minos build{name}",
        serial="ttyS0",
    ),
    "arm64": Architecture(
        {11: _UEFI_ARM64, 19: _UEFI_ARM64},
        {11: _UEFI_ARM64},
        minos="arm64",
        ipxe="copy it there from the package ipxe of Debian 13 or newer",
        built="haptera minos build{name}, on a machine of arm64; copy its folder there",
        serial="ttyAMA0",
    ),
}


@dataclass(frozen=True, slots=True)
class NetbootSettings:
    """Where to serve, as ADDRESS/BITS on an interface, and what: `haptera minos build` makes it.

    With `dhcp` as `proxy`, addresses come from the site's own server. `folder` holds `kernel` and
    `initramfs`; without it they lie in the parent's own `minos`.
    `loaders` holds iPXE. In `kernel_arguments` `{serial}` is the first serial line of the machine.
    """

    interface: str
    address: str
    dhcp: Literal["full", "proxy"] = "full"
    http_port: int = 4281
    router: str | None = None
    folder: HostPath | None = None
    loaders: HostPath = HostPath("/usr/lib/ipxe")
    # `init=` is one.
    kernel_arguments: Command = Command("console=tty0 console={serial} panic=10")

    def __post_init__(self) -> None:
        if any(ord(character) < 32 for character in self.kernel_arguments):
            raise ValueError("kernel_arguments are one line")
        self.here()

    def here(self) -> Here:
        try:
            router = None if self.router is None else IPv4Address(self.router)
            proxies = self.dhcp == "proxy"
            return Here(IPv4Interface(self.address), self.http_port, router, proxies)
        except AddressValueError as error:
            what = "address and router are of IPv4, as DHCP here gives no others"
            raise ValueError(f"{what}: {error}") from None


def make_offer(target: Target, settings: NetbootSettings, ends_at: float) -> BootOffer:
    """All that this node is given.

    Raises:
        HapteraError: it lacks an attribute, or a file is not there.
    """
    assert target.boot is not None
    here, nonce = settings.here(), secrets.token_urlsafe(_NONCE_BYTES)
    loaders, address, mac = Path(settings.loaders), _address(target, here), _mac(target)
    kind = _architecture(target)
    return BootOffer(
        target.entity.name,
        mac,
        address,
        loaders={one: _owned(loaders / name, kind.ipxe) for one, name in kind.loaders.items()},
        native={one: _owned(loaders / name, kind.ipxe) for one, name in kind.native.items()},
        files=files_of(target, settings),
        content={
            SCRIPT: _script(target, settings, address, nonce).encode("ascii"),
            INVITATION: _invitation(target.boot),
        },
        nonce=nonce,
        ends_at=ends_at,
    )


def files_of(target: Target, settings: NetbootSettings) -> dict[str, Path]:
    """The kernel and the initramfs that this node boots, by their names.

    Raises:
        HapteraError: its architecture or the name of its minOS cannot be, or a file is not there.
    """
    kind, name = _architecture(target), _minos(target)
    if name in {one.minos for one in ARCHITECTURES.values()}:
        what = f"{name!r} is the folder of an architecture, not the name of a minOS"
        raise HapteraError(what, where=str(target.entity), do="build it under another name")
    own = target.run_dir / FOLDER
    checked = _file if settings.folder is None else _owned
    folder = Path(settings.folder or own) / (name or "") / kind.minos
    built = kind.built.format(name="" if name is None else f" --name {name}")
    return {one: checked(folder / one, built) for one in (KERNEL, INITRAMFS)}


def _minos(target: Target) -> str | None:
    name = target.values.get(node.minos.name)
    return None if name is None else str(name)


def _script(target: Target, settings: NetbootSettings, address: IPv4Address, nonce: str) -> str:
    """For iPXE; UEFI needs the name of the initramfs among the kernel's arguments."""
    here = settings.here()
    base, minos = here.url(nonce, "").removesuffix("/"), _minos(target)
    arguments = [
        f"initrd={INITRAMFS}",
        f"haptera.name={target.entity.name}",
        f"haptera.address={address}/{here.interface.network.prefixlen}",
        f"haptera.mac={_mac(target).hex(':')}",
        f"haptera.boot={base}",
        *([] if minos is None else [f"haptera.minos={minos}"]),
        *([] if here.router is None else [f"haptera.router={here.router}"]),
        settings.kernel_arguments.replace("{serial}", _architecture(target).serial),
    ]
    return "\n".join(
        [
            "#!ipxe",
            f"kernel {base}/{KERNEL} {' '.join(arguments)}",
            f"initrd --name {INITRAMFS} {base}/{INITRAMFS}",
            "boot",
            "",
        ]
    )


def _invitation(boot: Boot) -> bytes:
    return msgspec.json.encode({"token": boot.token, "ca": boot.ca_pem, "parent": boot.parent})


def _owned(path: Path, do: str) -> Path:
    """A file that settings name, which nobody else may change: machines boot it as it is."""
    owned(str(_file(path, do)))
    return path


def _file(path: Path, do: str) -> Path:
    if not is_regular(path):
        raise HapteraError("there is no such file", where=str(path), do=do)
    return path


def _architecture(target: Target) -> Architecture:
    name = target.attributes.get("architecture", next(iter(ARCHITECTURES)))
    if name not in ARCHITECTURES:
        do = f"write one of {', '.join(ARCHITECTURES)}"
        what = f"{name!r} is no architecture that boots from the network"
        raise HapteraError(what, where=str(target.entity), do=do)
    return ARCHITECTURES[name]


def _address(target: Target, here: Here) -> IPv4Address:
    text = _attribute(target, "address")
    try:
        address = IPv4Address(text)
    except AddressValueError:
        address = None
    if address is None or address not in here.interface.network or address == here.address:
        raise HapteraError(
            f"{text!r} is not an address for a machine in {here.interface.network}",
            where=str(target.entity),
            do="give it one of its own there",
        )
    return address


def _mac(target: Target) -> bytes:
    text = _attribute(target, "mac")
    mac = node.parse_mac(text)
    if mac is None:
        do = "write 52:54:00:12:34:56"
        raise HapteraError(f"{text!r} is not a MAC address", where=str(target.entity), do=do)
    return mac


def _attribute(target: Target, name: str) -> str:
    if name not in target.attributes:
        do = f"give `{name}`: it boots from the network"
        raise HapteraError(f"has no attribute {name}", where=str(target.entity), do=do)
    return target.attributes[name]
