"""A network namespace of the lab's own, with a bridge and a port on it for each machine."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import AddressValueError, IPv4Interface
from pathlib import Path
from typing import Final

from haptera.lab.machine_bmc import Language
from haptera.model.errors import Code, HapteraError

# A port of a machine; the kernel's names of interfaces are 15 bytes at most.
PORT: Final = "machine{}"
_NEW_NETWORK: Final = 0x40000000
# What a machine with UEFI starts from, and the package that has it.
UEFI_CODE: Final = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
UEFI_VARIABLES: Final = Path("/usr/share/OVMF/OVMF_VARS_4M.fd")
_UEFI_PACKAGE: Final = "ovmf"
_EMULATOR: Final = "sushy_tools"
_TOOLS: Final = {"qemu-system-x86_64": "qemu-system-x86 ipxe-qemu", "ip": "iproute2"}
_BMC_TOOLS: Final = {
    Language.IPMI: {"ipmi_sim": "openipmi", "ipmitool": "ipmitool"},
    Language.REDFISH: {"openssl": "openssl"},
}


@dataclass(frozen=True, slots=True)
class Bridge:
    """The bridge: its name, and the parent's address there."""

    interface: str
    address: IPv4Interface

    @classmethod
    def parse(cls, interface: str, address: str) -> "Bridge":
        """The bridge of these settings.

        Raises:
            HapteraError: the address is none.
        """
        try:
            return cls(interface, IPv4Interface(address))
        except AddressValueError:
            do = "write ADDRESS/BITS"
            what = f"{address!r} is not an address in a network"
            raise HapteraError(what, where="site file, lab.bridge", do=do) from None


def check_here(
    languages: Collection[Language] = (Language.IPMI,),
    tools: Mapping[str, str] = _TOOLS,
    *,
    uefi: bool = False,
) -> None:
    """See that virtual machines can be run behind such BMCs, `uefi` those with such firmware.

    Raises:
        HapteraError: something is missing; it says all of it.
    """
    if os.geteuid() != 0:
        raise HapteraError(
            "virtual machines on a bridge need root", do="run it as root", code=Code.NOT_INSTALLED
        )
    needed = dict(tools)
    for language in sorted(languages):
        needed |= _BMC_TOOLS[language]
    missing = [package for tool, package in needed.items() if shutil.which(tool) is None]
    if uefi and not (UEFI_CODE.exists() and UEFI_VARIABLES.exists()):
        missing.append(_UEFI_PACKAGE)
    lines = [f"apt install {' '.join(missing)}"] if missing else []
    if Language.REDFISH in languages and find_spec(_EMULATOR) is None:
        lines.append(f"pip install {_EMULATOR.replace('_', '-')}")
    if lines:
        do = " && ".join(lines)
        raise HapteraError("virtual machines cannot be run", do=do, code=Code.NOT_INSTALLED)


def open_network(bridge: Bridge, ports: Sequence[str]) -> None:
    """Move this process into a network namespace of its own, and build the bridge there.

    It is to be called before other threads: those stay where they are. The namespace ends with the
    last process in it.

    Raises:
        HapteraError: the kernel refuses it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NETWORK) != 0:
        text = os.strerror(ctypes.get_errno())
        raise HapteraError(
            f"no network namespace can be made: {text}",
            do="run it as root",
            code=Code.NOT_INSTALLED,
        )
    name = bridge.interface
    lines = [
        "link set lo up",
        f"link add {name} type bridge stp_state 0 forward_delay 0",
        f"address add {bridge.address} dev {name}",
        f"link set {name} up",
    ]
    for port in ports:
        lines += [f"tuntap add dev {port} mode tap", f"link set {port} master {name} up"]
    done = subprocess.run(
        ["ip", "-batch", "-"], input="\n".join(lines), text=True, capture_output=True, check=False
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["ip printed nothing"])[0]
        raise HapteraError(f"the bridge cannot be built: {last}", where=f"bridge {name}")
