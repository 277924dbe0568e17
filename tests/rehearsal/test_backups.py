"""`haptera rehearse --from FILE`: a backup is rehearsed on, and no parent is asked."""

import json
from pathlib import Path

import pytest

from haptera.cli.main import OK, REFUSED
from haptera.daemon.cluster import ClusterIdentity, keep_cluster
from haptera.daemon.parent.backup import back_up
from haptera.daemon.settings import home_of
from haptera.model.changes import Change, Declare, SetDesired
from haptera.model.effects import Write
from haptera.model.entity import EntityId, node_id
from haptera.runtime.identity.private import private_directory
from haptera.runtime.processes.controllers import ControllerPlace
from haptera.runtime.store.changes_sql import apply
from haptera.runtime.store.schema_sql import open_database
from haptera.runtime.store.store import STATE_FILE
from tests.cli.test_commands import typed

NODES = ("n1", "n2", "n3")
SYSTEM = "system:compute@n[1-3]"
MODULES = ("jobs", "labnode", "system")
SITE = """\
cluster: quick
modules: [jobs, labnode, system]
nodes: {"n[1-3]": {platform: labnode}}
desired: {"n[1-3]": {power: off}}
"""


@pytest.fixture
def backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The backup of a parent whose three nodes run image a."""
    monkeypatch.chdir(tmp_path)
    changes: list[Change] = []
    for name in NODES:
        compute = EntityId("system", "compute", name)
        changes += [
            Declare(node_id(name), {"platform": "labnode"}, "site"),
            SetDesired(node_id(name), "power", "on", "site"),
            Declare(compute, {}, "site"),
            SetDesired(compute, "run", "running", "site"),
            SetDesired(compute, "image", "a", "site"),
        ]
    home = home_of(tmp_path)
    private_directory(home.parent)
    private_directory(home)
    connection = open_database(home / STATE_FILE)
    apply(connection, Write(1, tuple(changes)), wall_s=1.0)
    connection.commit()
    connection.close()
    keep_cluster(home, ClusterIdentity("quick", MODULES, (ControllerPlace("roll", "", "", {}),)))
    file = tmp_path / "monday.tar.gz"
    back_up(tmp_path, file, 1_795_284_000.0)
    return file


def test_a_roll_is_rehearsed_on_a_backup(backup: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("rehearse", "roll", SYSTEM, "--image", "b", "--from", str(backup), "--runs", "1")
    code, out, errors = typed(capsys, *words, "-o", "json")
    answer = json.loads(out)
    assert (code, errors, answer["assumed"], answer["restless"]) == (OK, "", True, {})
    assert answer["disrupted_nodes"]["median"] == len(NODES)
    code, out, _ = typed(capsys, *words)
    assert "of a backup: what is desired is assumed to be so, and nothing was measured" in out


def test_a_site_file_is_rehearsed_on_a_backup(
    backup: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("site.yaml").write_text(SITE)
    words = ("rehearse", "site.yaml", "--from", str(backup), "--runs", "1", "--within", "10m")
    code, out, errors = typed(capsys, *words, "-o", "json")
    assert (code, errors) == (OK, "")
    answer = json.loads(out)
    assert "labnode.switch_off" in answer["unmeasured"]
    assert answer["steps"]["median"] >= len(NODES)


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read: No such file or directory"), (b"no tar", "is not a valid backup")],
)
def test_what_is_no_backup_is_refused(
    content: bytes | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "other.tar.gz"
    if content is not None:
        file.write_bytes(content)
    words = ("rehearse", "roll", SYSTEM, "--image", "b", "--from", str(file))
    code, _, errors = typed(capsys, *words)
    assert (code, said in errors) == (REFUSED, True), errors
