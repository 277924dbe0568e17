"""The past of what is desired: who changed what from what to what, when and why."""

import contextlib
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.core.desired.revert import revert
from haptera.model.answers.past import Changed, Page
from haptera.model.changes import (
    Author,
    Change,
    Declare,
    SetDesired,
    Undeclare,
    UnsetDesired,
)
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code, HapteraError
from haptera.runtime.store.changes_sql import FORGOTTEN_AT_ONCE, HISTORY_KEPT_S
from haptera.runtime.store.history_sql import DEEDS, OF_WRITE
from haptera.runtime.store.store import Store
from haptera.selectors.selector import parse_selector
from tests.api.fake_backend import FakeBackend
from tests.runtime.test_migrations import made
from tests.runtime.test_store import Opened, opened

N01, N02 = node_id("n01"), node_id("n02")
WEB = EntityId("service", "web", "n01")
# A name that no entity has.
NO_NAME = node_id("?")
EVE, SITE = Author("user:eve", "the port is taken"), Author("user:ada")


def everything(_entity: EntityId) -> bool:
    return True


def past(store: Store, **asked: int | None) -> Page:
    return store.past(everything, **{"before": None, "count_max": 1000, **asked})


def test_history_says_who_changed_what_from_what_to_what_and_why(tmp_path: Path) -> None:
    with opened(tmp_path / "state.db") as one:
        one.write(Declare(WEB, {}, "site"), SetDesired(WEB, "port", 80, "site"), author=SITE)
        one.wall_s += 60
        one.write(SetDesired(WEB, "port", 81, "user:eve"), author=EVE)
        one.write(SetDesired(WEB, "port", 81, "user:eve"), author=EVE)
        one.write(Undeclare(WEB), author=SITE)
        page = past(one.store)
    web = "service:web@n01"
    assert page == Page(
        [
            Changed(5, 1060.0, web, None, "{}", None, "site", "site", "user:ada"),
            Changed(5, 1060.0, web, "port", 81, None, "user:eve", "user:eve", "user:ada"),
            Changed(
                3, 1060.0, web, "port", 80, 81, "user:eve", "site", "user:eve", "the port is taken"
            ),
            Changed(2, 1000.0, web, "port", None, 80, "site", None, "user:ada"),
            Changed(2, 1000.0, web, None, None, "{}", "site", None, "user:ada"),
        ],
        None,
    )


def test_history_comes_in_pages_of_what_is_chosen(tmp_path: Path) -> None:
    with opened(tmp_path / "state.db") as one:
        one.write(Declare(N01, {}, "site"), Declare(N02, {}, "site"))
        for rack in "123":
            one.write(Declare(N02, {"rack": rack}, "site"))
        pages, before = [], None
        while True:
            page = one.store.past(N02.__eq__, before=before, count_max=3)
            pages.append([change.after for change in page.changes])
            if (before := page.before) is None:
                break
    assert pages == [['{"rack":"3"}', '{"rack":"2"}', '{"rack":"1"}'], ["{}"]]


def test_a_write_is_found_by_each_of_its_revisions_and_by_no_other(tmp_path: Path) -> None:
    with opened(tmp_path / "state.db") as one:
        one.write(Declare(N01, {}, "site"))
        one.write(Declare(N02, {}, "site"), SetDesired(N02, "power", "on", "site"))
        found = [[change.name for change in one.store.written(number)] for number in range(5)]
    assert found == [[], [None], ["power", None], ["power", None], []]


def test_a_write_of_which_a_part_is_forgotten_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    with opened(tmp_path / "state.db") as one:
        nodes = [node_id(f"n{number}") for number in range(FORGOTTEN_AT_ONCE + 1)]
        one.write(*(Declare(node, {}, "site") for node in nodes), author=SITE)
        assert len(one.store.written(1)) == len(nodes)
        one.wall_s += HISTORY_KEPT_S + 1
        one.write(Declare(N02, {}, "site"), author=EVE)
        with pytest.raises(
            HapteraError, match="part of the write of revision 1001 may already be deleted"
        ) as told:
            one.store.written(len(nodes))
        assert told.value.code is Code.HISTORY_GONE
        assert len(one.store.written(len(nodes) + 1)) == 1


@pytest.mark.parametrize("query", [OF_WRITE, DEEDS])
def test_no_row_is_looked_at_again_for_each_other(tmp_path: Path, query: str) -> None:
    path = tmp_path / "state.db"
    with opened(path) as one:
        one.write(Declare(N01, {}, "site"))
    with contextlib.closing(sqlite3.connect(path)) as reader:
        reader.create_function("concerns", 4, lambda *row: True)
        wanted = {"1": 1, "all": True, "count_max": 9}
        told = [row[3] for row in reader.execute(f"EXPLAIN QUERY PLAN {query}", wanted)]
    assert any("history" in line for line in told)
    assert not [line for line in told if "CORRELATED" in line]


def test_of_some_entities_the_audit_has_what_concerns_them_alone(tmp_path: Path) -> None:
    heat = EntityId("freeze", "heat", None)
    with opened(tmp_path / "state.db") as one:
        for wall_s, changes in enumerate(
            (
                (Declare(N01, {}, "site"), Declare(N02, {}, "site"), Declare(WEB, {}, "site")),
                (SetDesired(N02, "power", "on", "site"),),
                (Declare(heat, {}, "user:eve"), SetDesired(heat, "of", "n01", "user:eve")),
                (SetDesired(heat, "of", "n[01-02]", "user:eve"),),
                (SetDesired(heat, "of", "n02", "user:eve"),),
            )
        ):
            one.wall_s = 1000.0 + wall_s
            one.write(*changes, author=EVE)
        for what, entity in (("retry", N01), ("evict n02", N02), ("brake", None), ("?", NO_NAME)):
            one.wall_s += 1
            one.store.note("user:ada", what, entity)
        one.write(SetDesired(N02, "power", "off", "site"), author=SITE)

        def told(within: str | None, count_max: int = 99) -> list[tuple[str, int | None]]:
            selector = None if within is None else parse_selector(within)
            return [(each.what, each.revision) for each in one.store.deeds(selector, count_max)]

        assert told("n01") == [("retry", None), ("1 change", 7), ("1 change", 6), ("2 changes", 3)]
        assert told("n01", 1) == [("retry", None)]
        assert told("service:web") == [("1 change", 3)]
        assert told("n03") == []
        assert len(told(None)) == 10


def test_what_is_too_old_is_forgotten_with_the_next_writes(tmp_path: Path) -> None:
    with opened(tmp_path / "state.db") as one:
        one.write(Declare(N01, {}, "site"), author=SITE)
        one.store.note("user:ada", "retry node:n01")
        one.wall_s += HISTORY_KEPT_S + 1
        one.write(Declare(N02, {}, "site"), author=EVE)
        assert [change.entity for change in past(one.store).changes] == ["node:n02"]
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db")) as reader:
        assert reader.execute("SELECT who FROM writes").fetchall() == [("user:eve",)]
        assert reader.execute("SELECT * FROM deeds").fetchall() == []


def test_a_file_of_the_version_before_is_taken_over_with_its_history(tmp_path: Path) -> None:
    with opened(made(tmp_path / "state.db", 2)) as one:
        one.write(SetDesired(N01, "power", "off", "site"), author=SITE)
        page = past(one.store)
    assert [(change.revision, change.name, change.who) for change in page.changes] == [
        (10, "power", "user:ada"),
        (8, "power", None),
    ]


ENTITIES = st.sampled_from([N01, N02, WEB])
NAMES = st.sampled_from(["power", "port"])
OWNERS = st.sampled_from(["site", "user:eve"])
ATTRIBUTES = st.dictionaries(st.sampled_from(["rack", "platform"]), st.sampled_from("ab"))
AUTHORS = st.sampled_from([SITE, EVE])


@st.composite
def writes(draw: st.DrawFn) -> list[tuple[list[Change], Author]]:
    """Some writes, each of what can be changed when it comes."""
    there: dict[EntityId, set[str]] = {}
    found = []
    for _ in range(draw(st.integers(1, 8))):
        changes: list[Change] = []
        for _ in range(draw(st.integers(1, 5))):
            entity, owner, name = draw(ENTITIES), draw(OWNERS), draw(NAMES)
            match draw(st.integers(0, 4)) if entity in there else 0:
                case 0:
                    changes.append(Declare(entity, draw(ATTRIBUTES), owner))
                    there.setdefault(entity, set())
                case 1 if name in there[entity]:
                    changes.append(UnsetDesired(entity, name))
                    there[entity].discard(name)
                case 2:
                    changes.append(Undeclare(entity))
                    del there[entity]
                case _:
                    changes.append(SetDesired(entity, name, draw(st.integers(0, 2)), owner))
                    there[entity].add(name)
        found.append((changes, draw(AUTHORS)))
    return found


@given(writes())
@settings(deadline=None)
def test_the_store_tells_the_same_history_as_the_plain_one(
    drawn: list[tuple[list[Change], Author]],
) -> None:
    plain = FakeBackend()
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder) / "state.db") as one:
        for changes, author in drawn:
            one.write(*changes, author=author)
            plain.write(*changes, author=author)
        assert past(one.store) == plain.past(everything, before=None, count_max=1000)
        for revision in range(plain.revision() + 2):
            assert one.store.written(revision) == plain.written(revision)


def content(one: Opened) -> list[object]:
    return [
        (entity.entity, entity.attributes, entity.owner, entity.desired)
        for entity in one.store.load().entities
    ]


@given(writes())
@settings(deadline=None)
def test_reverting_the_last_write_brings_back_what_was_there_before(
    drawn: list[tuple[list[Change], Author]],
) -> None:
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder) / "state.db") as one:
        befores, revisions = [], []
        for changes, author in drawn:
            befores.append(content(one))
            one.write(*changes, author=author)
            revisions.append(one.store.load().revision)
        for before, revision in zip(befores[::-1], revisions[::-1], strict=True):
            stored = {entity.entity: entity for entity in one.store.load().entities}
            changed = one.store.written(revision)
            # A write that changed nothing is not in the history.
            if changed and changed[0].revision == revision:
                one.write(*revert(changed, stored.get))
            assert content(one) == before
