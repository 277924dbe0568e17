"""Real virtual machines without a hypervisor's help: a disk of 512 bytes is what they run.

What they run says a letter at the serial line: `D` from the disk, `N` from the network. From the
disk, it shuts the machine down once the power button is pressed (the registers of Intel's PIIX4);
from the network, it has the machine start again.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from haptera.model.entity import node_id
from haptera.modules import libvirt, qemu
from haptera.modules.libvirt.domain import LibvirtDomain
from haptera.modules.qemu.machine import QemuMachine, QemuSettings
from haptera.sdk import Target
from tests.lab.rig import wait_for

QEMU: Final = "qemu-system-x86_64"
SECTOR_BYTES: Final = 512
# mov dx, 0x3f8; mov al, LETTER; out dx, al
SAYS: Final = "ba f8 03 b0 {:02x} ee"
# Enable the power button (PM1 enable), wait for it (PM1 status), and go to S5 (PM1 control).
SHUTS_DOWN: Final = """
    ba 02 06 b8 00 01 ef
    ba 00 06 ed f6 c4 01 74 fa
    ba 04 06 b8 00 20 ef
    f4 eb fd
"""
# sti; hlt, until the clock's next tick, 18 times a second; jmp to the beginning
SAYS_IT_AGAIN: Final = "fb f4 eb f6"
# The chipset's reset register.
STARTS_AGAIN: Final = "ba f9 0c b0 06 ee f4 eb fd"
NOBODY: Final = 65_534


def program(letter: str, then: str) -> bytes:
    """A boot sector; loaded from the network it is the same."""
    code = bytes.fromhex(SAYS.format(ord(letter)) + then)
    return code.ljust(SECTOR_BYTES - 2, b"\0") + b"\x55\xaa"


@dataclass(frozen=True)
class Computer:
    """One machine's files."""

    directory: Path

    @property
    def said(self) -> str:
        """All that it has said since it was made, and not what firmware says."""
        return (self.directory / "serial").read_text(errors="replace")

    def qemu(self, *more: str, run_dir: Path | None = None, **attributes: str) -> QemuMachine:
        """As the module sees it; its power is cut where it does not obey in 30 s."""
        serial = self.directory / "serial"
        line = ("-chardev", f"file,id=line,path={serial},append=on", "-serial", "chardev:line")
        settings = self.settings(*line, *more)
        attributes = {"memory_mb": "16", **attributes}
        where = run_dir or self.directory
        return QemuMachine(Target(node_id("n01"), attributes, settings=settings, run_dir=where))

    def settings(self, *more: str, record_consoles: bool = False) -> QemuSettings:
        """Those of a machine without a serial line."""
        disk = self.directory / "disk"
        arguments = [
            *("-machine", "pc", "-accel", "tcg", "-m", "{memory_mb}", "-nodefaults"),
            *("-drive", f"file={disk},format=raw,if=ide,read-only=off", "-boot", "order=c"),
            *more,
        ]
        given = {"arguments": arguments, "program": QEMU, "record_consoles": record_consoles}
        made: QemuSettings = qemu.module.settings(given)
        return made

    @property
    def pid(self) -> int:
        return int((self.directory / "n01.pid").read_text())


@contextmanager
def computer(directory: Path) -> Iterator[Computer]:
    """A machine that is off; whatever runs of it is ended."""
    if shutil.which(QEMU) is None:
        pytest.skip(f"{QEMU} is missing: apt install qemu-system-x86")
    (directory / "disk").write_bytes(program("D", SHUTS_DOWN))
    (directory / "serial").touch()
    one = Computer(directory)
    try:
        yield one
    finally:
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)


DOMAIN: Final = """<domain type='qemu'>
<name>n01</name><memory unit='MiB'>16</memory>
<os><type arch='x86_64' machine='pc'>hvm</type><boot dev='hd'/></os><features><acpi/></features>
<devices>
<disk type='file'><driver name='qemu' type='raw'/><source file='{place}/disk'/>
<target dev='hda'/></disk>
{serial}
<interface type='user'><model type='virtio'/></interface>
</devices></domain>
"""
# What it says goes to a file, or to a console.
SERIAL_FILE: Final = "<serial type='file'><source path='{place}/serial'/></serial>"
SERIAL_CONSOLE: Final = "<serial type='pty'/>"


@dataclass(frozen=True)
class Libvirt:
    """A libvirtd of nobody's, with one domain that is off."""

    place: Path
    process: "subprocess.Popen[bytes]"

    @property
    def uri(self) -> str:
        return f"qemu+unix:///session?socket={self.place}/run/libvirt/libvirt-sock"

    def domain(self, **attributes: str) -> LibvirtDomain:
        settings = libvirt.module.settings({"uri": self.uri})
        return LibvirtDomain(Target(node_id("n01"), attributes, settings=settings))

    def virsh(self, *words: str) -> str:
        return subprocess.run(
            ["virsh", "-q", "-c", self.uri, *words], check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    @property
    def said(self) -> str:
        return (self.place / "serial").read_text(errors="replace")


@contextmanager
def libvirtd(disk: bytes | None = None, serial: str = SERIAL_FILE) -> Iterator[Libvirt]:
    """As a plain user's, all of it in one folder, whose path is short enough for sockets."""
    for tool in ("libvirtd", "virsh", "setpriv", QEMU):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing: apt install libvirt-daemon libvirt-clients")
    if os.geteuid() != 0:
        pytest.skip("needs root, to be another user")
    with tempfile.TemporaryDirectory(prefix="lv", dir="/tmp") as folder:
        place = Path(folder)
        (place / "disk").write_bytes(disk or program("D", SHUTS_DOWN))
        (place / "serial").touch()
        for one in ("run", "home"):
            (place / one).mkdir()
        for path in (place, *place.iterdir()):
            os.chown(path, NOBODY, NOBODY)
        devices = serial.format(place=place)
        (place / "domain.xml").write_text(DOMAIN.format(place=place, serial=devices))
        yield from _served(place)


def _served(place: Path) -> Iterator[Libvirt]:
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": f"{place}/home",
        "XDG_RUNTIME_DIR": f"{place}/run",
    }
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            [*become, shutil.which("libvirtd") or "libvirtd"],
            env=variables, cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    one = Libvirt(place, process)
    try:
        wait_for((place / "run" / "libvirt" / "libvirt-sock").exists)
        # It tries first what each QEMU here can do, which takes a while.
        one.virsh("domcapabilities", "--virttype", "qemu", "--arch", "x86_64")
        one.virsh("define", str(place / "domain.xml"))
        yield one
    finally:
        process.kill()
        process.wait()
        for pid in (place / "run" / "libvirt" / "qemu" / "run").glob("*.pid"):
            with suppress(ProcessLookupError):
                os.kill(int(pid.read_text()), signal.SIGKILL)


async def until_said(machine: Computer | Libvirt, what: str) -> None:
    await asyncio.to_thread(wait_for, lambda: machine.said == what)
