"""A virtual machine's chassis: QEMU while it has power, and a BMC in front of it.

What the BMC does is a line in a pipe, which the chassis reads. The machine lives on when its BMC
dies, and the BMC when its machine does.
"""

import os
import select
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.lab import init, record, tree
from haptera.lab.bridge import UEFI_CODE, UEFI_VARIABLES
from haptera.lab.machine_bmc import CONSOLE_PORT, MachineBmcConfig, Nic, bmc_command, write_bmc
from haptera.lab.redfish_bmc import SAYS
from haptera.runtime import clock
from haptera.runtime.identity.private import private_directory

ORDERS_BYTES_MAX: Final = 4_096
# How long a BMC that died stays away.
BMC_AGAIN_S: Final = 0.5


class MachineConfig(msgspec.Struct, frozen=True):
    """One machine: its network card, its port on the bridge, its BMC, and where its files lie."""

    name: str
    mac: str
    port: str
    memory_mb: int
    uefi: bool
    nic: Nic
    bmc: MachineBmcConfig
    directory: str
    log: str


def machine_process(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Hold one machine until killed: a fork target."""
    config = msgspec.convert(arguments, MachineConfig)
    tree.rename(f"machine {config.name}")
    tree.leave_terminal()
    tree.adopt_orphans()
    init.redirect(Path(config.log))
    _Machine(config).run()


def network_card(config: MachineConfig) -> str:
    """The card, as QEMU names it."""
    model = "virtio-net-pci" if config.nic is Nic.VIRTIO else config.nic.value
    return f"{model},netdev=card,mac={config.mac}"


class _Machine:
    """The chassis; QEMU and the BMC are its children."""

    def __init__(self, config: MachineConfig) -> None:
        self._config = config
        self._home = private_directory(Path(config.directory))
        self._bmc_home = private_directory(self._home / "bmc")
        self._qemu: subprocess.Popen[bytes] | None = None
        self._boot = "default"

    def run(self) -> None:
        self._write_files()
        orders = os.open(self._bmc_home / "orders", os.O_RDWR | os.O_CLOEXEC)
        while True:
            bmc = self._start_bmc()
            ended = os.pidfd_open(bmc.pid)
            while not self._step(orders, ended):
                pass
            bmc.wait()
            os.close(ended)
            select.select((), (), (), BMC_AGAIN_S)

    def _step(self, orders: int, bmc_ended: int) -> bool:
        """Do what comes next; tell whether the BMC has ended."""
        qemu = [] if self._qemu is None else [os.pidfd_open(self._qemu.pid)]
        ready, _, _ = select.select([orders, bmc_ended, *qemu], (), ())
        gone = bool(qemu) and qemu[0] in ready
        for descriptor in qemu:
            os.close(descriptor)
        if gone:
            self._cut_power()
        elif orders in ready:
            for line in os.read(orders, ORDERS_BYTES_MAX).decode("ascii", "replace").splitlines():
                self._obey(line)
        return bmc_ended in ready

    def _obey(self, order: str) -> None:
        record.append(self._bmc_home / "commands.jsonl", {"at_ns": clock.now_ns(), "order": order})
        match order.split():
            case ["power", "1"] if self._qemu is None:
                self._give_power()
            case ["power", "0"]:
                self._cut_power()
            case ["reset", _] if self._qemu is not None:
                self._cut_power()
                self._give_power()
            case ["boot", device]:
                self._boot = device
                self._tell("boot", device)
            case _:
                pass  # An operating system here does not hear that it should shut down.

    def _give_power(self) -> None:
        if self._config.uefi and not self._variables.exists():
            shutil.copyfile(UEFI_VARIABLES, self._variables)
        self._qemu = subprocess.Popen(self._command(), stdin=subprocess.DEVNULL)
        init.write_pid(self._home / "qemu.pid", self._qemu.pid)
        # The boot device counts for one start.
        self._boot = "default"
        self._tell("boot", self._boot)
        self._tell("power", "1")

    def _cut_power(self) -> None:
        if self._qemu is not None:
            self._qemu.kill()
            self._qemu.wait()
            self._qemu = None
        (self._home / "qemu.pid").unlink(missing_ok=True)
        self._tell("power", "0")

    def _command(self) -> Sequence[str]:
        config = self._config
        console = self._home / "console.log"
        # Telnet, at the BMC's address: a client, one at a time, can send a break, too.
        place = f"host={config.bmc.host},port={CONSOLE_PORT},server=on,wait=off,telnet=on"
        return [
            *("qemu-system-x86_64", "-name", config.name, "-cpu", "max"),
            # Guests of these kernels do not start on nested KVM; emulation runs everywhere.
            *("-accel", "tcg,thread=multi,tb-size=64", "-m", str(config.memory_mb)),
            *("-nodefaults", "-display", "none", "-serial", "chardev:console"),
            *("-chardev", f"socket,id=console,{place},logfile={console},logappend=on"),
            *("-netdev", f"tap,id=card,ifname={config.port},script=no,downscript=no"),
            *(self._uefi() if config.uefi else self._bios()),
        ]

    @property
    def _variables(self) -> Path:
        """What its UEFI remembers."""
        return self._home / "uefi-variables.fd"

    def _bios(self) -> Sequence[str]:
        """Loads by the iPXE in the card's own ROM."""
        order = "n" if self._boot == "pxe" else "c"
        card = network_card(self._config)
        return ["-machine", "pc", "-boot", f"order={order},strict=on", "-device", card]

    def _uefi(self) -> Sequence[str]:
        """Loads by the firmware's own PXE where it has a driver: such a card has no ROM."""
        order = ",bootindex=1" if self._boot == "pxe" else ""
        from_network = "yes" if self._boot == "pxe" else "no"
        code = f"if=pflash,format=raw,unit=0,readonly=on,file={UEFI_CODE}"
        variables = f"if=pflash,format=raw,unit=1,file={self._variables}"
        rom = ",romfile=" if self._config.nic is Nic.VIRTIO else ""
        card = f"{network_card(self._config)}{rom}{order}"
        return [
            *("-machine", "q35", "-drive", code, "-drive", variables, "-device", card),
            # Told nothing, this firmware tries all networks, whatever the boot device.
            *("-fw_cfg", f"name=opt/org.tianocore/IPv4PXESupport,string={from_network}"),
            *("-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=no"),
        ]

    def _start_bmc(self) -> "subprocess.Popen[bytes]":
        command = bmc_command(self._config.bmc, self._bmc_home)
        bmc = subprocess.Popen(command, cwd=self._bmc_home, stdin=subprocess.DEVNULL)
        init.write_pid(self._bmc_home / "bmc.pid", bmc.pid)
        return bmc

    def _write_files(self) -> None:
        home = self._bmc_home
        write_bmc(self._config.bmc, home)
        # For who pulls its cable.
        (self._home / "port").write_text(f"{self._config.port}\n", encoding="ascii")
        for left in ("orders", SAYS):
            (home / left).unlink(missing_ok=True)
        os.mkfifo(home / "orders", 0o600)
        record.begin_anew(self._home / "console.log")
        record.begin_anew(home / "commands.jsonl")
        self._tell("power", "0")
        self._tell("boot", self._boot)

    def _tell(self, name: str, text: str) -> None:
        """Show this to the script: the whole of it, or what was before."""
        draft = self._bmc_home / f"{name}.new"
        draft.write_text(f"{text}\n", encoding="ascii")
        draft.replace(self._bmc_home / name)
