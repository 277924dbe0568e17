"""Breaks a virtual rack that runs: pulls a cable, hangs a BMC or has it lie, kills a machine."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from haptera.lab import tree
from haptera.lab.layout import Places
from haptera.lab.leftovers import running
from haptera.lab.machine_bmc import certify
from haptera.lab.redfish_bmc import CERTIFICATE, KEY, SAYS
from haptera.lab.tree import LabProcess
from haptera.model.errors import Code, HapteraError, UnknownNameError

_MACHINE: Final = "machine "
# What is put aside while another takes its place.
_KEPT: Final = ".kept"
# What is run in the rack's network namespace, and the package that has it.
_TOOLS: Final = {"nsenter": "util-linux", "ip": "iproute2", "nft": "nftables"}
_NO_TABLE: Final = "add table bridge haptera_lab\ndelete table bridge haptera_lab\n"
# This hook sees what the parent sends to the bridge's ports; both faults are of its DHCP replies.
_FORGED: Final = (
    _NO_TABLE
    + """\
table bridge haptera_lab {{
  chain forged {{
    type filter hook output priority 0
    ether type ip udp sport 67 {rewritten}
  }}
}}
"""
)
# By their place in bits behind the header of UDP (RFC 2131). Without its transaction's number, a
# reply is no client's; iPXE takes one without the magic cookie.
_UNKNOWN: Final = "@th,96,32 set 0"
# An offer (53, 1, 2) whose next option, the server that made it (54, 4, …), is another: the machine
# asks that one for the address. It is an address for examples (RFC 5737).
OTHER_SERVER: Final = "192.0.2.66"
_ANOTHERS: Final = "@th,1984,40 0x3501023604 @th,2024,32 set 0xc0000242"


class LabFault(StrEnum):
    """A fault of one machine, or, of DHCP, of the whole lab."""

    CABLE = "cable"
    BMC = "bmc"
    READING = "reading"
    MACHINE = "machine"
    PIN = "pin"
    DHCP = "dhcp"
    DHCP2 = "dhcp2"

    @property
    def of_all(self) -> bool:
        """True if the fault is of the whole lab, not of one machine."""
        return self in (LabFault.DHCP, LabFault.DHCP2)


class Rack:
    """The machines of a lab that runs, each held by its chassis.

    Raises:
        HapteraError: no lab with virtual machines runs there.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._chassis = {
            what.removeprefix(_MACHINE): process
            for what, process in running(places).items()
            if what.startswith(_MACHINE)
        }
        if not self._chassis:
            raise HapteraError(
                "no virtual machines of a lab run here",
                where=str(places.directory),
                do="start some: haptera lab --vms 2; or name the lab's directory: --dir",
                code=Code.NOT_FOUND,
            )

    def inject(self, fault: LabFault, node: str | None) -> None:
        """Break this, of this machine.

        Raises:
            HapteraError: there is no such machine, it is off, or a tool or the right is missing.
        """
        match fault:
            case LabFault.CABLE:
                self._ip("link", "set", self._port(node), "down")
            case LabFault.BMC:
                self._signal(node, "bmc/bmc.pid", signal.SIGSTOP)
            case LabFault.READING:
                self._say(node, "1\n")
            case LabFault.MACHINE:
                self._signal(node, "qemu.pid", signal.SIGKILL)
            case LabFault.PIN:
                self._change_certificate(node)
            case LabFault.DHCP:
                self._inside(["nft", "-f", "-"], _FORGED.format(rewritten=_UNKNOWN))
            case LabFault.DHCP2:
                self._inside(["nft", "-f", "-"], _FORGED.format(rewritten=_ANOTHERS))

    def mend(self, fault: LabFault, node: str | None) -> None:
        """Undo that, whether or not it was broken; a machine is switched on by its cluster.

        Raises:
            HapteraError: there is no such machine, or a tool or the right is missing.
        """
        match fault:
            case LabFault.CABLE:
                self._ip("link", "set", self._port(node), "up")
            case LabFault.BMC:
                self._signal(node, "bmc/bmc.pid", signal.SIGCONT)
            case LabFault.READING:
                self._say(node, None)
            case LabFault.PIN:
                self._restore_certificate(node)
            case LabFault.DHCP | LabFault.DHCP2:
                self._inside(["nft", "-f", "-"], _NO_TABLE)
            case LabFault.MACHINE:
                raise ValueError("who mends a machine that was killed is its cluster")

    def _of(self, node: str | None) -> LabProcess:
        if node not in self._chassis:
            known = ", ".join(sorted(self._chassis))
            what = f"this lab has no virtual machine {node!r}"
            raise UnknownNameError(what, where=str(self._places.directory), do=f"name one: {known}")
        return self._chassis[node]

    def _port(self, node: str | None) -> str:
        self._of(node)
        return (self._places.node(str(node)) / "port").read_text(encoding="ascii").strip()

    def _say(self, node: str | None, power: str | None) -> None:
        """Have its BMC say that of the power from now on; what is so, where it is None."""
        self._of(node)
        said = self._places.node(str(node)) / "bmc" / SAYS
        with _of_this_user():
            if power is None:
                said.unlink(missing_ok=True)
            else:
                said.write_text(power, encoding="ascii")

    def _change_certificate(self, node: str | None) -> None:
        """Have its BMC show another, as after a reset of its firmware, or as a stranger's would."""
        home = self._certified(node)
        with _of_this_user():
            for name in (CERTIFICATE, KEY):
                if not (home / f"{name}{_KEPT}").exists():
                    (home / name).rename(home / f"{name}{_KEPT}")
            certify(home, (home / "address").read_text(encoding="ascii").rpartition(":")[0])
        self._begin_anew(node)

    def _restore_certificate(self, node: str | None) -> None:
        home = self._certified(node)
        with _of_this_user():
            for name in (CERTIFICATE, KEY):
                if (home / f"{name}{_KEPT}").exists():
                    (home / f"{name}{_KEPT}").replace(home / name)
        self._begin_anew(node)

    def _begin_anew(self, node: str | None) -> None:
        """Have its chassis start its BMC anew; one that is just being started will do."""
        with suppress(_OffError):
            self._signal(node, "bmc/bmc.pid", signal.SIGKILL)

    def _certified(self, node: str | None) -> Path:
        """The folder of its BMC."""
        self._of(node)
        home = self._places.node(str(node)) / "bmc"
        if not (home / CERTIFICATE).exists():
            what = f"the BMC of {node} has no certificate"
            raise HapteraError(what, where=str(home), do="name a machine whose platform is redfish")
        return home

    def _signal(self, node: str | None, file: str, number: signal.Signals) -> None:
        """Send it to this child of the chassis, not to another that has its number by now."""
        chassis = self._of(node)
        path = self._places.node(str(node)) / file
        try:
            pid = int(path.read_text(encoding="ascii"))
            descriptor = os.pidfd_open(pid)
        except (FileNotFoundError, ProcessLookupError):
            raise _is_off(node, path) from None
        try:
            process = tree.read_process(pid)
            if process is None or process.dead or process.parent != chassis.pid:
                raise _is_off(node, path)
            signal.pidfd_send_signal(descriptor, number)
        except PermissionError:
            raise _forbidden() from None
        finally:
            os.close(descriptor)

    def _ip(self, *words: str) -> None:
        self._inside(["ip", *words])

    def _inside(self, command: Sequence[str], text: str = "") -> None:
        """Run this in the network namespace of the rack."""
        if os.geteuid() != 0:
            raise _forbidden()
        missing = [_TOOLS[one] for one in ("nsenter", command[0]) if shutil.which(one) is None]
        if missing:
            do = f"apt install {' '.join(missing)}"
            raise HapteraError(f"{command[0]} is not here", do=do, code=Code.NOT_INSTALLED)
        chassis = next(iter(self._chassis.values()))
        enter = ["nsenter", f"--net=/proc/{chassis.pid}/ns/net"]
        done = subprocess.run(
            [*enter, *command], input=text, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            said = done.stderr.strip() or f"it ended with {done.returncode}"
            raise HapteraError(said, where=" ".join(command), do="see that the lab still runs")


class _OffError(HapteraError):
    """A machine, or its BMC, does not run."""


def _is_off(node: str | None, path: Path) -> _OffError:
    do = f"switch it on first: haptera set {node} power=on"
    return _OffError(f"{node} does not run", where=str(path), do=do)


@contextmanager
def _of_this_user() -> Iterator[None]:
    try:
        yield
    except PermissionError:
        raise _forbidden() from None


def _forbidden() -> HapteraError:
    return HapteraError("this lab is another user's", do="run it as root", code=Code.FORBIDDEN)
