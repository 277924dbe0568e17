"""A restarted agent finds its session, its intents and what was last desired."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from haptera.core.state.side import PARENT
from haptera.model.changes import (
    Change,
    CloseIntent,
    Declare,
    Desired,
    OpenIntent,
    Stored,
    StoredEntity,
)
from haptera.model.effects import SaveDesired, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.model.events import Unwritten, Written
from haptera.model.intent import Intent
from haptera.runtime.enrolment.enrol import Enrolment
from haptera.runtime.enrolment.journal import Journal
from haptera.runtime.store.sessions import SavedSession
from haptera.wire.seal import Agreement

ROOT = Path(__file__).parents[2]
WEB = EntityId("service", "web", "n01")
START = Intent("i1", WEB, "service", "start", 2**62, "boot")
DESIRED = SaveDesired(9, 7, (StoredEntity(WEB, {}, "site", {"port": Desired(80, "site")}, 7),))
AGREEMENT = Agreement(bytes(range(32)), UUID(int=1), UUID(int=2), 3, 2**32 - 1, 0)
ENROLMENT = Enrolment(
    "n01",
    SavedSession(PARENT, AGREEMENT, ("127.0.0.1", 4271)),
    b"certificate",
    b"ca",
    1000,
    ("service",),
)


@contextmanager
def opened(directory: Path) -> Iterator[tuple[Journal, list[Written | Unwritten]]]:
    answers: list[Written | Unwritten] = []
    journal = Journal(directory, answers.append)
    try:
        yield journal, answers
    finally:
        journal.close()


def written(directory: Path, *changes: Change) -> list[Written | Unwritten]:
    with opened(directory) as (journal, answers):
        journal.submit(Write(1, changes))
        return answers


def test_a_new_agent_has_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as (journal, _):
        assert journal.load() == Stored(0, 0, [], [], {})
        assert journal.enrolment() is None


def test_all_that_was_kept_is_there_after_a_restart(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    assert written(directory, OpenIntent(START)) == [Written(1, 1)]
    with opened(directory) as (journal, _):
        key = journal.key()
        journal.keep(DESIRED)
        journal.save_enrolment(ENROLMENT)
        heard = replace(ENROLMENT.session, peer_boot=2**64 - 1, address=("127.0.0.3", 1))
        journal.save_session(heard)
    with opened(directory) as (journal, _):
        assert journal.load() == Stored(9, 7, list(DESIRED.entities), [START], {PARENT: 3})
        assert journal.enrolment() == replace(ENROLMENT, session=heard)
        assert journal.key().private_numbers() == key.private_numbers()


def test_a_closed_intent_is_gone(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    written(directory, OpenIntent(START))
    assert written(directory, CloseIntent("i1")) == [Written(1, 2)]
    with opened(directory) as (journal, _):
        assert journal.load() == Stored(0, 0, [], [], {})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            Declare(node_id("n01"), {}, "site"),
            "the desired state of an agent is changed at its parent",
        ),
        (OpenIntent(START), "intent i1 is open already, or enrols"),
    ],
)
def test_a_refused_write_changes_nothing(tmp_path: Path, change: Change, text: str) -> None:
    directory = tmp_path / "run"
    written(directory, OpenIntent(START))
    refused = written(directory, CloseIntent("i1"), OpenIntent(START), change)
    assert refused == [Unwritten(1, f"{text}; nothing was changed")]
    with opened(directory) as (journal, _):
        assert journal.load() == Stored(0, 0, [], [START], {})


def test_a_directory_that_takes_no_more_ends_nothing_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "run"
    with opened(directory) as (journal, answers):
        journal.save_enrolment(ENROLMENT)
        for name in ("desired", "session", "intents"):
            (directory / f"{name}.json.new").mkdir()  # the draft cannot be written
        heard = replace(ENROLMENT.session, peer_boot=5)
        journal.keep(DESIRED)
        journal.save_session(heard)
        journal.submit(Write(1, (OpenIntent(START),)))
        with pytest.raises(HapteraError, match="the session cannot be kept"):
            journal.save_enrolment(ENROLMENT)
        (refused,) = answers
        assert isinstance(refused, Unwritten)
        assert refused.text.endswith("; nothing was changed")
        assert journal.enrolment() == replace(ENROLMENT, session=heard)
    assert [record.getMessage().split(":")[1] for record in caplog.records] == [" not kept"] * 2
    with opened(directory) as (journal, _):
        assert journal.load() == Stored(0, 0, [], [], {PARENT: 3})
        assert journal.enrolment() == ENROLMENT


def test_only_the_owner_may_read_what_the_agent_keeps(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    with opened(directory) as (journal, _):
        journal.key()
        journal.save_enrolment(ENROLMENT)
        journal.keep(DESIRED)
    assert {file.stat().st_mode & 0o777 for file in directory.iterdir()} == {0o600}
    assert directory.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["intents.json", "desired.json", "session.json"])
def test_a_damaged_file_is_told_and_not_taken_for_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b'{"half')
    with (
        pytest.raises(HapteraError, match=rf"{name}: cannot be read"),
        opened(tmp_path),
    ):
        pass


HOLD = """
import os, pathlib, sys
from haptera.runtime.enrolment.journal import Journal
journal = Journal(pathlib.Path(sys.argv[1]), print)
if os.fork() == 0:
    os.write(1, b"forked")
    sys.stdin.read()
    os._exit(0)
os._exit(9)
"""


@pytest.mark.net
def test_a_second_agent_is_kept_out_and_told_by_whom(tmp_path: Path) -> None:
    with opened(tmp_path):
        second = subprocess.run(
            [sys.executable, "-c", HOLD, str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert f"is in use by process {os.getpid()} (" in second.stderr


@pytest.mark.net
def test_what_an_agent_left_running_does_not_keep_the_next_agent_out(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as first:
        assert first.stdin is not None
        assert first.stdout is not None
        assert first.stdout.read(6) == b"forked"
        first.wait(timeout=60)
        with opened(tmp_path) as (journal, _):
            assert journal.load().revision == 0
        first.stdin.close()
