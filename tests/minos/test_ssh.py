"""SSH in a minOS: a real client at a machine that booted it, with the key, and without."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from haptera import __version__
from haptera.minos.ssh import fingerprint, read_keys
from haptera.model.errors import HapteraError
from tests.minos.machine import built, machine
from tests.network import NETWORK

ADDRESS, PORT = f"{NETWORK}.79.1", 2222


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("# nobody yet\n\n", "has no public key"),
        ("# ada's:\n-----BEGIN OPENSSH PRIVATE KEY-----\n", "keys:2: is not a public key"),
        ('command="reboot" ssh-ed25519 AAAA ada\n', "keys:1: is not a public key"),
        ("ssh-ed25519 \u00e9\u0085\n", "keys:1: is not a public key"),
    ],
)
def test_only_public_keys_are_taken(content: str, wrong: str, tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(content.encode("latin-1"))
    with pytest.raises(HapteraError, match=wrong):
        read_keys(tmp_path / "keys")


def test_keys_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(HapteraError, match="nowhere: cannot be read: No such file"):
        read_keys(tmp_path / "nowhere")


@pytest.mark.net
@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_who_has_the_key_logs_in_and_nobody_else(tmp_path: Path) -> None:
    ours, other = key(tmp_path / "ours"), key(tmp_path / "other")
    inside = built(tmp_path, read_keys(ours.with_suffix(".pub")))
    assert inside.ssh == (fingerprint(ours.with_suffix(".pub").read_text()),)
    assert "ssh" in [part.why for part in inside.parts]
    forwarded = f"user,id=card,restrict=on,hostfwd=tcp:{ADDRESS}:{PORT}-:22"
    with machine(tmp_path, "-netdev", forwarded) as (_, console):
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
            ["ssh-keygen", "-lf", str(tmp_path / "known")],
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
