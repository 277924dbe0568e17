"""A machine that boots a minOS, in an emulator, all by itself: who logs in, and how it is off."""

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from haptera import __version__
from haptera.minos.build import build
from haptera.minos.ssh import fingerprint, read_keys
from haptera.model.errors import Code, HapteraError
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.campaign, pytest.mark.timeout(600)]

MAC = "52:54:00:00:09:01"
# Nobody serves it anything: it goes on to ask its own loopback for its clock.
ARGUMENTS = (
    "console=ttyS0 quiet haptera.name=n01 haptera.address=10.0.2.15/24 "
    f"haptera.mac={MAC} haptera.boot=http://127.0.0.1:1/none"
)
ASKS_FOR_CLOCK = "clock cannot be fetched"
ADDRESS, PORT = f"{NETWORK}.79.1", 2222
OFF_WITHIN_S = 120


@pytest.fixture(scope="module")
def minos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one that was built with a key for SSH, and the key, `ours`."""
    folder = tmp_path_factory.mktemp("minos")
    public = key(folder / "ours").with_suffix(".pub")
    try:
        inside = build(
            folder, ["virtio_pci", "virtio_net"], None, ssh_keys=read_keys(public), level=3
        )
    except HapteraError as error:
        if error.code is not Code.NOT_INSTALLED:
            raise
        pytest.skip(str(error))
    assert inside.ssh == (fingerprint(public.read_text()),)
    assert "ssh" in [part.why for part in inside.parts]
    return folder


def test_who_has_the_key_logs_in_and_nobody_else(minos: Path) -> None:
    ours, other = minos / "ours", key(minos / "other")
    forwarded = f"user,id=card,restrict=on,hostfwd=tcp:{ADDRESS}:{PORT}-:22"
    with machine(minos, "-netdev", forwarded) as (_, console):
        told = ssh(ours, "root", "hostname; id -u; ls -A /root /root/.ssh")
        assert (told.returncode, told.stdout.split()) == (
            0,
            ["n01", "0", "/root:", ".ssh", "/root/.ssh:", "authorized_keys"],
        ), told.stderr
        # What a person types at a terminal.
        typed = ssh(ours, "root", "tty; python3 -m haptera --version", "RequestTTY=force")
        assert typed.stdout.splitlines() == ["/dev/pts/0", f"haptera, version {__version__}"]
        # Its own key is none of the image's: the console tells it, and SSH shows it.
        shown = subprocess.run(
            ["ssh-keygen", "-lf", str(minos / "known")],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert re.findall(r"SHA256:\S+", shown) == re.findall(
            r"minos: its SSH key is (SHA256:\S+)", console
        )
        for refused in (
            ssh(other, "root", "id"),
            ssh(ours, "daemon", "id"),
            ssh(ours, "root", "id", "PubkeyAuthentication=no"),
        ):
            assert refused.returncode == 255
            assert refused.stderr.splitlines()[-1].endswith("Permission denied (publickey).")
        forwarded = ssh(
            ours, "root", "id", "ExitOnForwardFailure=yes", "RemoteForward=1234 localhost:1"
        )
        assert "remote port forwarding failed" in forwarded.stderr


def test_a_minos_ends_what_runs_and_is_off_once_its_power_button_is_pressed(minos: Path) -> None:
    with (
        machine(minos, "-netdev", "user,id=card,restrict=on") as (qemu, _),
        socket.socket(socket.AF_UNIX) as monitor,
    ):
        monitor.connect(str(minos / "monitor"))
        monitor.sendall(b"system_powerdown\n")
        told, _ = qemu.communicate(timeout=OFF_WITHIN_S)
    assert qemu.returncode == 0, told
    lines = [line for line in told.splitlines() if "power button" in line or "off" in line]
    assert lines == [
        "minos: its power button was pressed: all that runs here ends",
        "minos: off",
    ], told


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


def key(path: Path) -> Path:
    if shutil.which("ssh-keygen") is None or shutil.which("ssh") is None:
        pytest.skip("no SSH client: apt install openssh-client")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


def ssh(
    identity: Path, user: str, command: str, *options: str
) -> "subprocess.CompletedProcess[str]":
    ours = [
        "BatchMode=yes",
        "IdentitiesOnly=yes",
        "StrictHostKeyChecking=accept-new",
        f"UserKnownHostsFile={identity.parent / 'known'}",
    ]
    words = ["ssh", "-F", "none", "-i", str(identity), "-p", str(PORT)]
    words += [word for option in (*ours, *options) for word in ("-o", option)]
    return subprocess.run(
        [*words, f"{user}@{ADDRESS}", command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
