"""`haptera rehearse --from FILE`: a backup is rehearsed on, and no parent is asked."""

import io
import json
import os
import sqlite3
import tarfile
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haptera.cli.main import OK, REFUSED
from haptera.daemon.cluster import ClusterIdentity, keep_cluster
from haptera.daemon.parent.backup import back_up, look_into, restore
from haptera.daemon.settings import home_of
from haptera.model.changes import Change, Declare, SetDesired
from haptera.model.effects import Write
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError, UnreadableError
from haptera.runtime.identity.private import private_directory
from haptera.runtime.processes.controllers import ControllerPlace
from haptera.runtime.store.changes_sql import apply
from haptera.runtime.store.schema_sql import open_database
from haptera.runtime.store.store import STATE_FILE
from tests.cli.test_commands import typed

NODES = ("n1", "n2", "n3")
SYSTEM = "system:compute@n[1-3]"
ROWS = (
    "CREATE TRIGGER t AFTER UPDATE ON store BEGIN DELETE FROM store; END",
    "DROP TABLE desired; CREATE VIEW desired AS WITH RECURSIVE n(x) AS"
    " (SELECT 1 UNION ALL SELECT x FROM n) SELECT x entity, x name, x value, x owner FROM n",
    "DROP TABLE store",
    "DELETE FROM store",
    "UPDATE entities SET attributes = 'x'",
    "UPDATE entities SET attributes = '{\"a\": 1}'",
    "UPDATE entities SET attributes = x'ff'",
    "PRAGMA foreign_keys = OFF; UPDATE entities SET id = 'none' WHERE id = 'node:n1'",
    "PRAGMA foreign_keys = OFF; UPDATE entities SET id = x'ff' WHERE id = 'node:n1'",
    "PRAGMA user_version = 99",
    "PRAGMA user_version = -1",
    "PRAGMA application_id = 0",
)
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


def refused(file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The words with which a file is refused, by a rehearsal and by who would restore it."""
    words = ("rehearse", "roll", SYSTEM, "--image", "b", "--from", str(file))
    code, _, errors = typed(capsys, *words)
    assert (code, "Traceback" in errors) == (REFUSED, False), errors
    with pytest.raises(HapteraError):
        restore(file, file.parent / "restored")
    return errors


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
    assert said in refused(file, capsys)


def packed(file: Path, told: dict[str, object], files: dict[str, bytes | tarfile.TarInfo]) -> Path:
    """An archive that says of itself that it is a backup of these files, with right digests."""
    plain = {name: one for name, one in files.items() if isinstance(one, bytes)}
    sums = {name: sha256(one).hexdigest() for name, one in plain.items()}
    says = {"format": 1, "haptera": "1", "revision": 1, "made_s": 1, "sha256": sums, **told}
    with tarfile.open(file, "w:gz") as archive:
        for name, one in {"backup.json": json.dumps(says).encode(), **files}.items():
            entry = one if isinstance(one, tarfile.TarInfo) else tarfile.TarInfo(name)
            content = one if isinstance(one, bytes) else b""
            entry.size = max(entry.size, len(content))
            archive.addfile(entry, io.BytesIO(content) if content else None)
    return file


def entry(name: str, sort: bytes = tarfile.REGTYPE, **more: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = sort
    for key, value in more.items():
        setattr(made, key, value)
    return made


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"state.db": b""},
        {"state.db": b"no database"},
        {"../state.db": b"x"},
        {"/etc/passwd": b"x"},
        {"secrets/../../x": b"x"},
        {"state.db": entry("state.db", tarfile.SYMTYPE, linkname="/etc/passwd")},
        {"state.db": entry("state.db", tarfile.LNKTYPE, linkname="backup.json")},
        {"state.db": entry("state.db", tarfile.FIFOTYPE)},
        {"state.db": entry("state.db", tarfile.CHRTYPE)},
        # It says that it is larger than any memory.
        {"state.db": entry("state.db", size=1 << 50)},
    ],
)
def test_an_archive_of_other_files_is_refused(
    files: dict[str, bytes | tarfile.TarInfo], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(packed(tmp_path / "evil.tar.gz", {}, files), capsys)
    assert not [*tmp_path.glob("restored/**/state.db")]


@pytest.mark.parametrize("change", ROWS)
def test_rows_that_no_parent_writes_are_refused(
    change: str, backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever made such a backup has also made its digests."""
    state = tmp_path / "evil.db"
    with tarfile.open(backup) as archive:
        found = archive.extractfile("state.db")
        assert found is not None
        state.write_bytes(found.read())
    with closing(sqlite3.connect(state)) as theirs:
        theirs.executescript(change)
    file = packed(tmp_path / "evil.tar.gz", {}, {"state.db": state.read_bytes()})
    words = ("rehearse", "roll", SYSTEM, "--image", "b", "--from", str(file))
    code, _, errors = typed(capsys, *words)
    assert (code, "Traceback" in errors, str(file) in errors) == (REFUSED, False, True), errors


@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_backup_that_is_altered_anywhere_is_refused(backup: Path, data: st.DataObject) -> None:
    whole = backup.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.binary(max_size=4))
    altered = backup.with_name("altered.tar.gz")
    altered.write_bytes(whole[:at] + other + whole[at + data.draw(st.integers(0, 4)) :])
    try:
        _, found = look_into(altered)[:2]
    except UnreadableError:
        return
    # What is between its files, or before and after them, is read by nobody.
    assert found == look_into(backup).stored


def test_what_is_no_file_is_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "is not a valid backup" in refused(tmp_path / "fifo", capsys)
    with pytest.raises(HapteraError, match="is not a valid backup"):
        restore(tmp_path, tmp_path / "restored")
