"""A machine that boots a minOS which was built into a folder, in an emulator, all by itself."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from haptera.minos.build import Inside, build
from haptera.model.errors import Code, HapteraError

MAC = "52:54:00:00:09:01"
# Nobody serves it anything: it goes on to ask its own loopback for its clock.
ARGUMENTS = (
    "console=ttyS0 quiet haptera.name=n01 haptera.address=10.0.2.15/24 "
    f"haptera.mac={MAC} haptera.boot=http://127.0.0.1:1/none"
)
ASKS_FOR_CLOCK = "clock cannot be fetched"


def built(folder: Path, keys: list[str]) -> Inside:
    """One with these keys for SSH, in the folder."""
    try:
        return build(folder, ["virtio_pci", "virtio_net"], None, ssh_keys=keys, level=3)
    except HapteraError as error:
        if error.code is not Code.NOT_INSTALLED:
            raise
        pytest.skip(str(error))


@contextmanager
def machine(folder: Path, *options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """One that boots what was built there, once it asks for its clock; and its console until then.

    `options` are those of the emulator's network.
    """
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is missing: apt install qemu-system-x86")
    words = [
        *("qemu-system-x86_64", "-cpu", "max", "-m", "256", "-nodefaults", "-display", "none"),
        *("-kernel", str(folder / "kernel"), "-initrd", str(folder / "initramfs")),
        *("-append", ARGUMENTS, "-serial", "stdio"),
        *("-monitor", f"unix:{folder}/monitor,server=on,wait=off"),
        *options,
        *("-device", f"virtio-net-pci,netdev=card,mac={MAC},romfile="),
    ]
    qemu = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace"
    )
    with qemu:
        try:
            assert qemu.stdout is not None
            written = ""
            while ASKS_FOR_CLOCK not in written:
                written += (line := qemu.stdout.readline())
                assert line, written
            yield qemu, written
        finally:
            qemu.kill()
