"""What the store acknowledged holds, whole, whatever happens to the process or the disk."""

import concurrent.futures
import contextlib
import os
import queue
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.core.sync.admission import AdmissionReason
from haptera.daemon.channels.sessions import ended_above
from haptera.model.changes import (
    Author,
    Cause,
    Change,
    CloseIntent,
    Declare,
    Desired,
    OpenIntent,
    SetDesired,
    Stored,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.effects import Write
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.model.events import Asked, Released, Unwritten, Written
from haptera.model.intent import Intent
from haptera.model.parts import EnrolmentLevel
from haptera.runtime.identity.tokens import TOKEN_TTL_S, Bearer, Scope, parse_token
from haptera.runtime.store import sessions_sql
from haptera.runtime.store.sessions import SavedSession
from haptera.runtime.store.sessions_sql import TOKENS_MAX, BootToken, Claimed, ClaimRefused
from haptera.runtime.store.sqlite_writer import WRITES_QUEUED_MAX, Failure
from haptera.runtime.store.store import Store, kept
from tests.runtime.plain_store import PlainStore
from tests.runtime.store_child import write_number

N01, N02 = node_id("n01"), node_id("n02")
WEB = EntityId("service", "web", "n01")
BOOT = Intent("i1", N01, "labnode", "switch_on", 5, "boot", enrols=True)
CLUSTER = UUID(int=7)
ANSWER_WITHIN_S = 60
ROOT = Path(__file__).parents[2]


class Opened:
    """A store with its answers in order, and a wall clock that stands."""

    def __init__(
        self,
        path: Path,
        pages_max: int | None = None,
        shipped: Callable[[bytes], None] | None = None,
    ) -> None:
        self.answers: queue.SimpleQueue[Written | Unwritten] = queue.SimpleQueue()
        self.wall_s = 1000.0
        self.store = Store.open(
            path,
            deliver=self.answers.put,
            wall_s=lambda: self.wall_s,
            pages_max=pages_max,
            shipped=shipped,
        )
        self.path, self.ticket = path, 0

    def write(
        self, *changes: Change, if_revision: int | None = None, author: Author | None = None
    ) -> Written | Unwritten:
        self.ticket += 1
        self.store.submit(Write(self.ticket, changes, if_revision, author))
        return self.answers.get(timeout=ANSWER_WITHIN_S)

    def claim(self, token: str, public_key: bytes) -> Claimed | ClaimRefused:
        parsed = parse_token(token)
        assert parsed is not None
        future = self.store.claim(parsed, public_key, cluster=CLUSTER, address=("127.0.0.1", 4271))
        answer = future.result(ANSWER_WITHIN_S)
        assert isinstance(answer, Claimed | ClaimRefused)
        return answer

    def token(self, intent: str = "i1") -> str:
        """The token of a boot, which must be there."""
        token = self.store.token_for(intent)
        assert token is not None
        return token

    def enrolled(self, intent: str = "i1", token: str | None = None) -> SavedSession:
        """The session of a node that claims its token."""
        claimed = self.claim(token or self.token(intent), b"key")
        assert isinstance(claimed, Claimed)
        return claimed.session


@contextlib.contextmanager
def opened(
    path: Path,
    pages_max: int | None = None,
    shipped: Callable[[bytes], None] | None = None,
) -> Iterator[Opened]:
    one = Opened(path, pages_max, shipped)
    try:
        yield one
    finally:
        one.store.close()


def loaded(path: Path) -> Stored:
    with opened(path) as one:
        return one.store.load()


def uuids(path: Path) -> dict[str, str]:
    """Those of all nodes that ever were, by their names."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT name, uuid FROM nodes").fetchall())


def boot(name: str) -> Intent:
    """Another boot of the same node."""
    return msgspec.structs.replace(BOOT, id=name)


def values(stored: Stored) -> tuple[int, list[StoredEntity], list[Intent]]:
    """What a plain store has too."""
    return stored.revision, stored.entities, stored.intents


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "parent" / "state.db"


def test_what_was_written_is_there_after_a_restart(path: Path) -> None:
    with opened(path) as one:
        written = one.write(
            Declare(N01, {"rack": "1"}, "site"),
            Declare(WEB, {}, "site"),
            SetDesired(WEB, "run", "running", "site"),
            SetDesired(WEB, "port", 80, "user:eve"),
            OpenIntent(BOOT),
        )
        before = one.store.load()
    assert written == Written(1, 5)
    stored = loaded(path)
    assert stored == before
    assert stored == Stored(
        stored.epoch,
        5,
        [
            StoredEntity(N01, {"rack": "1"}, "site", {}, 1),
            StoredEntity(
                WEB,
                {},
                "site",
                {"port": Desired(80, "user:eve"), "run": Desired("running", "site")},
                4,
            ),
        ],
        [BOOT],
        {},
    )


def test_a_write_that_is_refused_changes_nothing(path: Path) -> None:
    with opened(path) as one:
        refused = one.write(Declare(N01, {}, "site"), SetDesired(WEB, "run", "running", "site"))
        assert refused == Unwritten(1, "service:web@n01 is not declared", Cause.INVALID)
        assert one.store.load().entities == []
        assert one.write() == Written(2, 0)


def test_a_refused_write_does_not_undo_its_neighbours_in_the_same_commit(path: Path) -> None:
    with opened(path) as one:
        writes = [
            Write(1, (Declare(N01, {}, "site"),)),
            Write(2, (Declare(WEB, {}, "site"), SetDesired(WEB, "port", 2**70, "site"))),
            Write(3, (Declare(node_id("n02"), {}, "site"),)),
        ]
        for write in writes:
            one.store.submit(write)
        answers = [one.answers.get(timeout=ANSWER_WITHIN_S) for _ in writes]
        assert [type(answer) for answer in answers] == [Written, Unwritten, Written]
        assert [entity.entity for entity in one.store.load().entities] == [N01, node_id("n02")]


def test_a_write_made_for_an_older_revision_is_refused_and_says_so(path: Path) -> None:
    with opened(path) as one:
        one.write(Declare(N01, {}, "site"))
        assert one.write(Declare(WEB, {}, "site"), if_revision=1) == Written(2, 2)
        stale = one.write(Undeclare(WEB), if_revision=1)
        assert stale == Unwritten(
            3,
            "made for revision 1, but the desired state changed since, at 2; read it again",
            Cause.STALE,
        )


def test_intents_come_and_go_without_making_a_reader_of_desired_state_stale(path: Path) -> None:
    with opened(path) as one:
        one.write(Declare(N01, {}, "site"))
        one.write(OpenIntent(BOOT), CloseIntent(BOOT.id))
        assert one.write(Undeclare(N01), if_revision=1) == Written(3, 4)


def test_a_node_keeps_its_uuid_for_ever(path: Path) -> None:
    with opened(path) as one:
        one.write(Declare(N01, {}, "site"))
        first = uuids(path)
        one.write(Undeclare(N01))
        one.write(Declare(N01, {"rack": "2"}, "site"))
    assert first.keys() == {"n01"}
    assert uuids(path) == first


def test_two_stores_have_two_epochs(tmp_path: Path) -> None:
    assert loaded(tmp_path / "a.db").epoch != loaded(tmp_path / "b.db").epoch


def test_only_the_owner_may_read_the_file(path: Path) -> None:
    with opened(path) as one:
        one.write(Declare(N01, {}, "site"))
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_others_may_write_in_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(HapteraError, match="others may write here"):
        loaded(tmp_path / "state.db")


# Who else has the file, and what else it may be.


@pytest.mark.net
def test_a_second_process_is_kept_out_and_told_by_whom(path: Path) -> None:
    with opened(path):
        child = subprocess.run(
            [sys.executable, "-m", "tests.runtime.store_child", str(path), "1"],
            capture_output=True,
            cwd=ROOT,
            text=True,
            timeout=ANSWER_WITHIN_S,
            check=False,
        )
    assert child.returncode == 1
    assert f"is in use by process {os.getpid()} (" in child.stderr


def test_what_was_asked_for_lately_is_there_after_a_restart(path: Path) -> None:
    with opened(path) as one:
        for wall_s, request in (
            (900.0, Asked(WEB)),
            (950.0, Asked(WEB)),
            (999.0, Released("n01")),
            (1000.0, None),
            (1000.0, Released()),
            # Its clock was set back since: it may be of any age.
            (1100.0, Asked(N01)),
        ):
            one.wall_s = wall_s
            assert one.store.note("user:eve", "some request", N01, request).result() is None
    with opened(path) as one:
        assert one.store.requests(60) == [
            (Asked(WEB), 50.0),
            (Released("n01"), 1.0),
            (Released(), 0.0),
        ]


def test_a_file_from_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    loaded(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    content = path.read_bytes()
    with pytest.raises(HapteraError, match="is of version 99, this haptera knows up to 11"):
        loaded(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"no database at all\n" * 100, bytes(8192)])
def test_what_is_no_database_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_bytes(content)
    with pytest.raises(HapteraError, match="is damaged, or no database"):
        loaded(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(HapteraError, match="is not a haptera state file"):
        loaded(path)


def test_a_damaged_file_is_refused_rather_than_started_empty(path: Path) -> None:
    with opened(path) as one:
        for number in range(50):
            one.write(Declare(node_id(f"n{number}"), {"rack": "x" * 60}, "site"))
    content = bytearray(path.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 64] = bytes(range(64))
    path.write_bytes(content)
    with pytest.raises(HapteraError, match="is damaged"):
        loaded(path)


def test_a_missing_file_whose_log_is_there_is_not_started_empty(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.with_name("state.db-wal").write_bytes(b"left behind")
    with pytest.raises(HapteraError, match=r"is missing, but state\.db-wal is there"):
        loaded(path)


# A disk that is full, and has room again.


def test_a_full_store_refuses_whole_writes_and_takes_them_when_there_is_room(path: Path) -> None:
    with opened(path, pages_max=40) as one:
        number = 0
        while isinstance(answer := one.write(*_large(number)), Written):
            number += 1
        assert answer == Unwritten(number + 1, "state.db: disk is full; nothing was changed")
        assert one.store.faults() == [
            "nothing can be changed: state.db: disk is full: "
            f"see to the parent's disk at {path.parent}"
        ]
        assert [each.entity for each in one.store.load().entities] == [
            node_id(f"n{each:03}") for each in range(number)
        ]
    with opened(path) as one:
        assert one.write(*_large(number)) == Written(1, 2 * (number + 1))
        assert one.store.faults() == []


def _large(number: int) -> tuple[Change, ...]:
    """Two changes that fit or do not fit together."""
    entity = node_id(f"n{number:03}")
    return (
        Declare(entity, {"rack": "x" * 500}, "site"),
        SetDesired(entity, "power", "y" * 3500, "site"),
    )


def test_a_write_too_large_for_the_disk_does_not_take_its_neighbours_with_it(path: Path) -> None:
    with opened(path, pages_max=60) as one:
        large = tuple(change for number in range(100, 200) for change in _large(number))
        writes = [
            Write(1, (Declare(N01, {}, "site"),)),
            Write(2, large),
            Write(3, (Declare(WEB, {}, "site"),)),
        ]
        for write in writes:
            one.store.submit(write)
        answers = [one.answers.get(timeout=ANSWER_WITHIN_S) for _ in writes]
        assert answers == [
            Written(1, 1),
            Unwritten(2, "state.db: disk is full; nothing was changed"),
            Written(3, 2),
        ]


@pytest.mark.net
def test_a_disk_that_is_really_full_is_told_and_survived(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system of its own needs root and the right to mount")
    try:
        with opened(disk / "state.db") as one:
            assert one.write(Declare(N01, {}, "site")) == Written(1, 1)
            filler = disk / "filler"
            with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while file.write(bytes(4096)):
                    pass
            number = 0
            while isinstance(answer := one.write(*_large(number)), Written):
                number += 1
            assert answer.text == "state.db: disk is full; nothing was changed"
            assert len(one.store.load().entities) == number + 1
            assert "disk is full" in one.store.faults()[0]
            filler.unlink()
            assert isinstance(one.write(*_large(number)), Written)
            # So small a disk is about to be full again.
            assert "its disk has" in one.store.faults()[0]
        assert len(loaded(disk / "state.db").entities) == number + 2
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_more_writes_than_the_queue_holds_are_refused_at_once(path: Path) -> None:
    with opened(path) as one:
        # Another program's lock keeps the writer waiting while the queue fills.
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            tickets = range(2 * WRITES_QUEUED_MAX)
            for ticket in tickets:
                one.store.submit(Write(ticket, ()))
        answers = [one.answers.get(timeout=ANSWER_WITHIN_S) for _ in tickets]
        refused = [answer for answer in answers if isinstance(answer, Unwritten)]
        assert len(refused) >= WRITES_QUEUED_MAX - 1_000
        assert {answer.text for answer in refused} == {
            f"state.db: {WRITES_QUEUED_MAX} writes wait already; nothing was changed"
        }
        assert sorted(answer.ticket for answer in answers) == list(tickets)


def test_a_closed_store_says_so(path: Path) -> None:
    with opened(path) as one:
        pass
    assert one.write() == Unwritten(1, "state.db: is closed; nothing was changed")


# Tokens and sessions.


def test_a_token_is_handed_out_once_and_stored_as_a_hash_only(path: Path) -> None:
    with opened(path) as one:
        one.write(Declare(N01, {}, "site"), OpenIntent(BOOT))
        token = one.token()
        assert one.store.token_for("i1") is None
        api = one.store.mint_token(Bearer("demo", Scope.READ), 60.0).text
        content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    for text in (token, api):
        secret = text.split(".")[2]
        assert secret.encode() not in content
        assert secret not in repr(parse_token(text))


def test_an_intent_that_enrols_needs_a_declared_node(path: Path) -> None:
    with opened(path) as one:
        refused = one.write(OpenIntent(BOOT))
        assert refused == Unwritten(1, "n01 is not declared, so it cannot enrol", Cause.INVALID)
        assert one.store.load().intents == []


def test_incarnations_grow_with_each_boot_and_are_durable_when_handed_out(path: Path) -> None:
    with opened(path) as one:
        one.write(Declare(N01, {}, "site"))
        for number in (1, 2):
            one.write(OpenIntent(boot(f"i{number}")))
            session = one.enrolled(f"i{number}")
            assert session.agreement.incarnation == number
    with opened(path) as one:
        stored = one.store.load()
        assert stored.incarnations == {"n01": 2}
        assert {"n01": str(session.agreement.node)} == uuids(path)
        assert one.store.sessions() == [session]
        assert session.agreement.secret.hex() not in repr(session)
        assert str(session.agreement.secret) not in repr(session)


def test_a_node_has_enrolled_until_it_is_to_boot_again(path: Path) -> None:
    def stored(one: Opened) -> list[str]:
        return one.store.load().enrolled

    with opened(path) as one:
        one.write(Declare(N01, {}, "site"), OpenIntent(BOOT))
        assert stored(one) == []
        one.enrolled()
        assert stored(one) == ["n01"]
        one.write(OpenIntent(boot("i2")))
        assert stored(one) == []
        one.enrolled("i2")
        one.write(CloseIntent("i2"))
    with opened(path) as one:
        assert stored(one) == ["n01"]
        one.store.drop_session("n01").result(ANSWER_WITHIN_S)
        assert stored(one) == []


def test_a_claim_is_repeated_until_the_session_is_heard_from_and_across_restarts(
    path: Path,
) -> None:
    with opened(path) as one:
        one.write(Declare(N01, {}, "site"), OpenIntent(BOOT))
        token = one.token()
        first = one.enrolled(token=token)
        assert one.claim(token, b"other") == ClaimRefused(
            AdmissionReason.DOUBLE, token.split(".")[1], "n01", 1
        )
    with opened(path) as one:
        assert one.claim(token, b"key") == Claimed(first, again=True)
        heard = replace(first, peer_boot=2**64 - 1, address=("127.9.9.9", 5))
        one.store.save_session(heard)
        assert one.claim(token, b"key") == ClaimRefused(
            AdmissionReason.SPENT, token.split(".")[1], "n01"
        )
    with opened(path) as one:
        assert one.store.sessions() == [heard]


def test_a_session_that_was_followed_by_another_is_not_written_back(path: Path) -> None:
    with opened(path) as one:
        one.write(Declare(N01, {}, "site"))
        sessions: list[SavedSession] = []
        for number in (1, 2):
            one.write(OpenIntent(boot(f"i{number}")))
            sessions.append(one.enrolled(f"i{number}"))
        one.store.save_session(replace(sessions[0], peer_boot=7))
        assert one.store.sessions() == [sessions[1]]


def test_no_session_is_adopted_that_would_be_taken_for_another_nodes(path: Path) -> None:
    with opened(path) as one:
        one.write(Declare(N01, {}, "site"), Declare(N02, {}, "site"), OpenIntent(BOOT))
        own = one.enrolled()
        agreement = replace(own.agreement, node=UUID(int=2), incarnation=5, parent_index=7)
        sound = SavedSession("n02", agreement, ("127.9.9.9", 5))
        for wrong in (
            replace(sound, agreement=replace(agreement, node=own.agreement.node)),
            replace(sound, agreement=replace(agreement, parent_index=own.agreement.parent_index)),
            replace(sound, peer="n99"),
        ):
            assert one.store.adopt([wrong]).result() == []
        assert one.store.adopt([sound]).result() == [sound]
        assert one.store.adopt([replace(sound, address=("127.9.9.8", 5))]).result() == []
        assert one.store.sessions() == [own, sound]


def test_a_session_that_ended_above_ends_below_and_is_never_handed_up_again(tmp_path: Path) -> None:
    """Two stores of a tree; what passes between them is what one has read of the other."""
    with opened(tmp_path / "above" / "state.db") as above, opened(tmp_path / "b" / "state.db") as b:
        for one in (above, b):
            one.write(Declare(N01, {}, "site"), OpenIntent(BOOT))
        first = b.enrolled()
        assert above.store.adopt([first]).result() == [first]
        assert ended_above({"n01": 1}, above.store.sessions(), counted(above)) == []

        above.store.drop_session("n01").result()
        assert ended_above({"n01": 1}, above.store.sessions(), counted(above)) == ["n01"]
        assert above.store.adopt([first]).result() == []
        b.store.drop_session("n01").result()
        assert b.store.adopt([first], counted(above)).result() == []

        b.write(OpenIntent(boot("i2")))
        again = b.enrolled("i2")
        assert above.store.adopt([again]).result() == [again]
        own = {"n01": again.agreement.incarnation}
        assert ended_above(own, above.store.sessions(), counted(above)) == []
        with opened(tmp_path / "c" / "state.db") as other:
            other.write(Declare(N01, {}, "site"))
            sessions = above.store.sessions()
            assert other.store.adopt(sessions, counted(above)).result() == [again]
            other.store.drop_session("n01").result()
            assert ended_above(own, other.store.sessions(), counted(other)) == ["n01"]


def test_at_which_level_a_node_has_enrolled_stays_with_its_session(tmp_path: Path) -> None:
    """Through a claim that is repeated, a restart, another parent, and until the next boot."""
    here, there = tmp_path / "a" / "state.db", tmp_path / "b" / "state.db"
    with opened(here) as one:
        one.write(Declare(N01, {}, "site"), OpenIntent(BOOT, EnrolmentLevel.OUT_OF_BAND))
        token = one.token()
        for _ in range(2):
            session = one.enrolled(token=token)
            assert session.level == "out-of-band"
        one.store.save_session(replace(session, peer_boot=7))
    with opened(here) as one, opened(there) as two:
        (kept_one,) = one.store.sessions()
        assert (kept_one.level, kept_one.peer_boot) == ("out-of-band", 7)
        two.write(Declare(N01, {}, "site"))
        assert two.store.adopt([kept_one]).result() == [kept_one]
        assert two.store.sessions() == [kept_one]
        one.write(OpenIntent(boot("i2"), EnrolmentLevel.WINDOW))
        assert one.enrolled("i2").level == "window"
        one.write(OpenIntent(boot("i3")))
        assert one.enrolled("i3").level is None
        assert one.store.sessions()[0].level is None


def counted(one: Opened) -> dict[str, int]:
    with contextlib.closing(sqlite3.connect(one.path)) as connection:
        return sessions_sql.load_incarnations(connection)


def test_an_expired_or_wrong_token_and_one_of_a_removed_node_are_refused(path: Path) -> None:
    with opened(path) as one:
        one.write(Declare(N01, {}, "site"), OpenIntent(BOOT))
        token = one.token()
        name = token.split(".")[1]
        assert one.claim(f"hp1.{name}.wrong", b"key") == ClaimRefused(
            AdmissionReason.UNKNOWN, name, None
        )
        assert one.claim("hp1.none.wrong", b"key") == ClaimRefused(
            AdmissionReason.UNKNOWN, "none", None
        )
        one.write(Undeclare(N01))
        assert one.claim(token, b"key") == ClaimRefused(AdmissionReason.UNKNOWN, name, None)
        one.write(Declare(N01, {}, "site"))
        one.wall_s += TOKEN_TTL_S
        assert one.claim(token, b"key") == ClaimRefused(AdmissionReason.EXPIRED, name, "n01")


def test_of_invitations_that_were_asked_for_the_last_is_good_and_ends_no_session(
    path: Path,
) -> None:
    with opened(path) as one:
        one.write(Declare(N01, {}, "site"), OpenIntent(BOOT))
        one.enrolled()
        invited = [one.store.invite("n01").result() for _ in range(2)]
        assert isinstance(one.store.invite("n99").result(), Failure)
        texts = [made.text for made in invited if isinstance(made, BootToken)]
    with opened(path) as one:
        assert one.store.load().enrolled == ["n01"], "nobody has claimed it"
        refused, claimed = (one.claim(text, b"another key") for text in texts)
        assert isinstance(refused, ClaimRefused)
        assert isinstance(claimed, Claimed)
        assert claimed.session.agreement.incarnation == 2


def test_a_token_of_a_slow_boot_is_good_for_as_long_as_that_is_waited_for(path: Path) -> None:
    with opened(path) as one:
        one.write(Declare(N01, {}, "site"), OpenIntent(BOOT, good_for_ms=1_800_000))
        minted = one.store.minted_for("i1")
        assert minted is not None
        assert (minted.good_for_s, minted.text in repr(minted)) == (1_800.0, False)
        one.wall_s += 1_799.0
        assert isinstance(one.claim(minted.text, b"key"), Claimed)
        one.write(OpenIntent(boot("i2"), good_for_ms=1_800_000))
        second = one.token("i2")
        one.wall_s += 1_800.0
        refused = one.claim(second, b"key")
        assert isinstance(refused, ClaimRefused)
        assert refused.reason is AdmissionReason.EXPIRED


def test_a_claim_given_up_by_its_caller_does_not_stop_the_store(path: Path) -> None:
    with opened(path) as one:
        parsed = parse_token("hp1.a.b")
        assert parsed is not None
        future = one.store.claim(parsed, b"key", cluster=CLUSTER, address=("127.0.0.1", 1))
        assert not future.cancel()
        concurrent.futures.wait([future], ANSWER_WITHIN_S)
        assert one.write() == Written(1, 0)


def test_a_token_of_the_api_is_good_for_its_scope_and_time_also_after_a_restart(
    path: Path,
) -> None:
    eve = Bearer("eve", Scope.WRITE, "rack1n*")
    with opened(path) as one:
        text = one.store.mint_token(eve, 60.0).text
    with opened(path) as one:
        assert one.store.check_token(text) == eve
        assert one.store.check_token(text + "x") is None
        assert one.store.check_token("hp1.nobody.secret") is None
        assert one.store.check_token("Bearer \N{SNOWMAN}") is None
        (row,) = one.store.tokens()
        assert (row.bearer, row.made_s, row.expires_s) == (eve, 1000.0, 1060.0)
        one.wall_s += 60.0
        assert one.store.check_token(text) is None
        assert one.store.tokens() == []


def test_a_revoked_token_holds_no_more_nor_after_a_restart(path: Path) -> None:
    with opened(path) as one:
        kept_one = one.store.mint_token(Bearer("eve", Scope.READ), 60.0)
        gone = one.store.mint_token(Bearer("bob", Scope.READ), 60.0)
        revoked = one.store.revoke_token(gone.row.id)
        assert one.store.check_token(gone.text) is None
        assert revoked is not None
        kept(revoked[1].result(ANSWER_WITHIN_S))
        assert one.store.revoke_token(gone.row.id) is None
    with opened(path) as one:
        assert one.store.check_token(gone.text) is None
        assert one.store.check_token(kept_one.text) == Bearer("eve", Scope.READ)


def test_tokens_have_an_end(path: Path) -> None:
    with opened(path) as one:
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.executemany(
                "INSERT INTO tokens (id, name, sha256, scope, expires_s) VALUES (?, ?, ?, ?, ?)",
                [(str(n), "x", b"", "read", 9e9) for n in range(TOKENS_MAX)],
            )
        with pytest.raises(HapteraError, match="there are 1000 tokens already: revoke some"):
            one.store.mint_token(Bearer("eve", Scope.READ), 60.0)


# Against a plain model.

ENTITIES = [node_id("a"), node_id("b"), EntityId("service", "s", "a"), EntityId("job", "j", None)]
entities = st.sampled_from(ENTITIES)
names = st.sampled_from(["run", "port"])
owners = st.sampled_from(["site", "user:eve"])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
contents = st.one_of(texts, st.integers(-(2**63), 2**63 - 1))
intents = st.builds(
    Intent,
    st.sampled_from(["i1", "i2"]),
    entities,
    st.just("labnode"),
    st.just("switch_on"),
    st.integers(0, 2**62),
    st.just("boot"),
    st.booleans(),
)
declares = st.builds(Declare, entities, st.dictionaries(names, texts, max_size=2), owners)
changes = st.one_of(
    declares,
    declares,
    st.builds(SetDesired, entities, names, contents, owners),
    st.builds(UnsetDesired, entities, names),
    st.builds(Undeclare, entities),
    st.builds(OpenIntent, intents),
    st.builds(CloseIntent, st.sampled_from(["i1", "i2"])),
)
# A write may be made for a revision that many back; None: a restart.
steps = st.one_of(
    st.tuples(
        st.lists(changes, max_size=4).map(tuple),
        st.one_of(st.none(), st.none(), st.integers(-1, 4)),
    ),
    st.none(),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, min_size=1, max_size=12))
def test_the_store_does_what_a_plain_one_does(
    script: list[tuple[tuple[Change, ...], int | None] | None],
) -> None:
    plain, before = PlainStore(), dict[str, str]()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "state.db"
        one = Opened(path)
        for step in script:
            if step is None:
                one.store.close()
                one = Opened(path)
                continue
            made, back = step
            expected = None if back is None else plain.revision - back
            done = plain.write(Write(0, made, expected))
            answer = one.write(*made, if_revision=expected)
            assert isinstance(answer, Written) == done, answer
            assert not done or answer == Written(one.ticket, plain.revision)
            stored = one.store.load()
            now = uuids(path)
            assert now.items() >= before.items()
            assert now.keys() >= {e.entity.name for e in stored.entities if e.entity.kind == "node"}
            before = now
            assert values(stored) == plain.values()
        one.store.close()


# Against kill -9.

KILLS = 10


@pytest.mark.slow
@pytest.mark.net
def test_after_kill_nine_every_acknowledged_write_is_there_and_none_is_half_there(
    path: Path,
) -> None:
    rng = random.Random(2)
    plain, applied = PlainStore(), 0
    for _ in range(KILLS):
        acknowledged = _run_and_kill(path, applied + 1, rng.randrange(1, 120))
        stored = loaded(path)
        reached = _ticket(stored)
        assert reached >= acknowledged[-1][0]
        revisions = {}
        for ticket in range(applied + 1, reached + 1):
            assert plain.write(write_number(ticket))
            revisions[ticket] = plain.revision
        assert dict(acknowledged).items() <= revisions.items()
        assert values(stored) == plain.values()
        applied = reached
    assert applied > KILLS * 20


def _run_and_kill(path: Path, first: int, answers: int) -> list[tuple[int, int]]:
    """Tickets and revisions that a writing process acknowledged before it was killed."""
    command = [sys.executable, "-m", "tests.runtime.store_child", str(path), str(first)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(answers)]
        child.kill()
        lines += child.stdout.read().splitlines(keepends=True)
    whole = [line.split() for line in lines if line.endswith(b"\n")]
    assert whole, "the writer died by itself"
    return [(int(ticket), int(revision)) for ticket, revision in whole]


def _ticket(stored: Stored) -> int:
    for entity in stored.entities:
        if entity.entity == node_id("counter"):
            ticket = entity.desired["ticket"].value
            assert isinstance(ticket, int)
            return ticket
    return 0


def test_a_token_that_ended_stands_for_nobody(path: Path) -> None:
    eve = Bearer("eve", Scope.WRITE, "n1")
    with opened(path) as one:
        key = one.store.mint_token(eve, 60.0).row.id
        gone = one.store.mint_token(eve, 60.0).row.id
        one.store.revoke_token(gone)
        found = [one.store.bearer_of(each) for each in (key, gone, "nobody")]
        one.wall_s += 60.0
        assert (found, one.store.bearer_of(key)) == ([eve, None, None], None)
