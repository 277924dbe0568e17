"""A real cluster whose parent has a key: its files and its backup tell nobody who lacks that."""

import base64
import json
import subprocess
import tarfile

import pytest

from tests.cli.rig import command, environment, lab, typed
from tests.lab.rig import wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow]

SITE = """\
cluster: small
nodes:
  n[1-2]: {platform: labnode, address: "127.{x}.1.{n}", bmc: "127.{x}.2.{n}:4280"}
desired:
  n[1-2]: {power: on, agent: up}
lab: {delay_ms: 10}
"""


def test_neither_the_files_of_a_parent_nor_its_backup_tell_whom_nodes_trust(tmp_path):
    key, file = tmp_path / "key", tmp_path / "state.tar.gz"
    key.write_bytes(base64.urlsafe_b64encode(b"k" * 32))
    key.chmod(0o600)
    (tmp_path / "site.yaml").write_text(SITE)
    sealed = {"HAPTERA_SECRETS_KEY": str(key)}
    home = tmp_path / ".haptera" / "parent"
    with lab(tmp_path, **sealed):
        wait_for(lambda: typed("status", "--check", folder=tmp_path)[0] == 0)
        assert typed("backup", file, folder=tmp_path)[0] == 0
        secrets = [session_secret(tmp_path / ".haptera" / "nodes" / name) for name in ("n1", "n2")]
        with tarfile.open(file) as archive:
            kept = [archive.extractfile(one).read() for one in archive]
        kept += [one.read_bytes() for one in (home / "ca.key", *home.glob("state.db*"))]
        assert not any(secret in content for secret in secrets for content in kept)
        assert not any(b"PRIVATE KEY" in content for content in kept)

    other = tmp_path / "other"
    assert typed("restore", "--dir", other, file, folder=tmp_path)[0] == 0
    serve = command("serve", "--dir", other, "--listen", "127.0.0.1")
    done = subprocess.run(serve, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "ca.key is sealed, and no key is given" in done.stderr
    assert "name the file of keys in HAPTERA_SECRETS_KEY" in done.stderr


def session_secret(node):
    """What the agent of a node shares with its parent, by its own account."""
    kept = json.loads((node / "run" / "session.json").read_bytes())
    return base64.b64decode(kept["session"]["agreement"]["secret"])
