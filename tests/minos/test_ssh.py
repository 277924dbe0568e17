"""SSH in a minOS: the keys that are taken."""

from pathlib import Path

import pytest

from haptera.minos.ssh import read_keys
from haptera.model.errors import HapteraError


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
