"""What a parent keeps with a key tells nobody without it how to be the parent, or a node."""

import contextlib
import queue
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.model.changes import Declare
from haptera.model.effects import Write
from haptera.model.entity import node_id
from haptera.model.errors import HapteraError
from haptera.model.events import Unwritten, Written
from haptera.runtime.identity.pki import check_opens, key_pem, open_authority
from haptera.runtime.identity.sealing import UNSEALED, Sealer
from haptera.runtime.store.sessions import SavedSession
from haptera.runtime.store.store import Store
from haptera.wire.seal import SECRET_BYTES, Agreement

OLD, NEW = (urlsafe_b64encode(one * 32) for one in (b"o", b"n"))
OPENS = {"old": Sealer([OLD]), "both": Sealer([NEW, OLD]), "new": Sealer([NEW])}


def session(number: int) -> SavedSession:
    secret = secrets.token_bytes(SECRET_BYTES)
    agreement = Agreement(secret, UUID(int=1), UUID(int=number), 1, number, 12)
    return SavedSession(f"n{number}", agreement, ("127.0.0.7", 4271))


@contextlib.contextmanager
def opened(folder: Path, sealer: Sealer) -> Iterator[Store]:
    answers: queue.SimpleQueue[Written | Unwritten] = queue.SimpleQueue()
    store = Store.open(
        folder / "state.db", sealer, deliver=answers.put, wall_s=lambda: 0.0, shipped=None
    )
    with contextlib.closing(store):
        if not store.load().entities:
            declared = tuple(Declare(node_id(f"n{number}"), {}, "site") for number in (1, 2))
            store.submit(Write(1, declared))
            answers.get(timeout=60)
        yield store


def told(folder: Path) -> bytes:
    """All that is written there."""
    return b"".join(one.read_bytes() for one in sorted(folder.iterdir()) if one.is_file())


def test_with_a_key_nothing_of_a_parent_tells_the_authoritys_key_or_a_sessions(
    tmp_path: Path,
) -> None:
    """Neither what was written before there was a key, nor what came later, nor what changed."""
    made = open_authority(tmp_path, 0.0)
    first, second = session(1), session(2)
    with opened(tmp_path, UNSEALED) as store:
        store.adopt([first]).result()
    assert first.agreement.secret in told(tmp_path)
    assert key_pem(made.key) in told(tmp_path)

    moved = replace(first, peer_boot=7)
    authority = open_authority(tmp_path, 0.0, sealer=OPENS["old"])
    with opened(tmp_path, OPENS["old"]) as store:
        assert first.agreement.secret not in told(tmp_path)
        store.adopt([second]).result()
        store.save_session(moved)
        assert store.sessions() == [moved, second]
    assert key_pem(authority.key) == key_pem(made.key)
    for one in (first.agreement.secret, second.agreement.secret, b"PRIVATE KEY"):
        assert one not in told(tmp_path)
    with opened(tmp_path, OPENS["old"]) as store:
        assert store.sessions() == [moved, second]


def test_an_authority_that_is_made_with_a_key_is_never_written_without(tmp_path: Path) -> None:
    authority = open_authority(tmp_path, 0.0, sealer=OPENS["old"])
    assert b"PRIVATE KEY" not in told(tmp_path)
    again = open_authority(tmp_path, 0.0, sealer=OPENS["old"])
    assert key_pem(again.key) == key_pem(authority.key)


def test_a_new_key_takes_the_place_of_an_old_one(tmp_path: Path) -> None:
    authority, one = open_authority(tmp_path, 0.0, sealer=OPENS["old"]), session(1)
    with opened(tmp_path, OPENS["old"]) as store:
        store.adopt([one]).result()
    for keys in ("both", "new"):
        assert open_authority(tmp_path, 0.0, sealer=OPENS[keys]).cluster == authority.cluster
        with opened(tmp_path, OPENS[keys]) as store:
            assert store.sessions() == [one]


@pytest.mark.parametrize(
    ("sealer", "why"),
    [(UNSEALED, "is sealed, and no key is given"), (OPENS["new"], "is sealed with another key")],
    ids=["no key", "another key"],
)
def test_without_its_key_a_parent_is_not_started_and_nothing_changes(
    tmp_path: Path, sealer: Sealer, why: str
) -> None:
    open_authority(tmp_path, 0.0, sealer=OPENS["old"])
    with opened(tmp_path, OPENS["old"]) as store:
        store.adopt([session(1)]).result()
    before = told(tmp_path)
    with pytest.raises(HapteraError, match=rf"ca\.key {why}"):
        open_authority(tmp_path, 0.0, sealer=sealer)
    with pytest.raises(HapteraError, match=rf"ca\.key {why}"):
        check_opens(tmp_path, sealer)
    if sealer is not UNSEALED:
        with (
            pytest.raises(HapteraError, match=f"the session of n1 {why}"),
            opened(tmp_path, sealer),
        ):
            pass
    with (
        pytest.raises(HapteraError, match=f"the session of n1 {why}"),
        opened(tmp_path, sealer) as store,
    ):
        store.sessions()
    assert told(tmp_path) == before


@given(st.sampled_from([b"", b"1 ", b"2 ", OPENS["old"].sealed(b"x")[15:34]]), st.binary())
def test_whatever_somebody_wrote_there_is_refused_as_damaged(form: bytes, rest: bytes) -> None:
    with pytest.raises(HapteraError, match=r"ca\.key is sealed with another key, or damaged"):
        OPENS["both"].opened(b"haptera sealed " + form + rest, "ca.key")


def test_what_is_not_there_or_not_sealed_opens_without_a_key(tmp_path: Path) -> None:
    check_opens(tmp_path, UNSEALED)
    open_authority(tmp_path, 0.0)
    check_opens(tmp_path, UNSEALED)
    check_opens(tmp_path, OPENS["new"])
