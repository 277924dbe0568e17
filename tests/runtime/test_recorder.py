"""What happened is written down, a file a day, and read back as it was at any time."""

import math
import random
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.core.views.lemons import FOLLOWED, count_troubles
from haptera.model.answers.past import Happened, Sort
from haptera.model.entity import EntityId, node_id, parse_entity
from haptera.model.errors import StorageError
from haptera.model.walltime import WALL_S_MAX
from haptera.runtime.store.event_log_reader import (
    KnownThen,
    happenings_since,
    known_at,
    last_happenings,
)
from haptera.runtime.store.event_log_writer import QUEUED_MAX, Recorder, days
from tests.api.fake_backend import everything
from tests.lab.rig import wait_for

N01, WEB = node_id("n01"), EntityId("service", "web", "n01")
DAY_S = 86_400


def begun(at_s: float) -> Happened:
    return Happened(at_s, "", Sort.BEGUN)


def seen(at_s: float, value: str | None, entity: EntityId = N01, name: str = "power") -> Happened:
    return Happened(at_s, str(entity), Sort.SEEN, name, value, "bmc")


def stands(at_s: float, condition: str, why: str | None = None) -> Happened:
    return Happened(at_s, str(N01), Sort.STANDS, None, condition, why)


def record(folder: Path, *happened: Happened, **limits: int) -> None:
    recorder = Recorder(folder, **limits)
    for one in happened:
        recorder.note([one])
    recorder.close()


def test_how_it_was_is_told_for_any_time(tmp_path: Path) -> None:
    record(
        tmp_path,
        begun(100),
        seen(101, "off"),
        stands(101, "acting", "switches on"),
        seen(105, "on"),
        stands(105, "converged"),
        seen(105, "running", WEB, "run"),
        seen(110, "on?"),
        Happened(120, str(WEB), Sort.GONE),
    )
    acting = KnownThen({"power": "off"}, "acting", "switches on")
    converged = KnownThen({"power": "on"}, "converged", None)
    assert known_at(tmp_path, everything, 100) == {}
    assert known_at(tmp_path, everything, 104) == {N01: acting}
    assert known_at(tmp_path, everything, 105) == {
        N01: converged,
        WEB: KnownThen({"run": "running"}),
    }
    assert known_at(tmp_path, WEB.__eq__, 110) == {WEB: KnownThen({"run": "running"})}
    assert known_at(tmp_path, everything, 999) == {
        N01: KnownThen({"power": "on?"}, "converged", None)
    }


def test_the_last_that_happened_comes_first_and_from_all_days(tmp_path: Path) -> None:
    happened = [begun(5), seen(6, "off"), seen(6, "on", WEB), seen(DAY_S + 1, "on")]
    record(tmp_path, *happened)
    assert [one.name for one in days(tmp_path)] == [
        "history-1970-01-01.db",
        "history-1970-01-02.db",
    ]
    # The second day begins with all that was known on the first.
    told = [happened[3], happened[2], happened[1], happened[2], happened[1], happened[0]]
    assert last_happenings(tmp_path, everything, count_max=9) == told
    assert last_happenings(tmp_path, N01.__eq__, count_max=2) == [happened[3], happened[1]]


def test_of_one_moment_power_is_read_before_what_depends_on_it(tmp_path: Path) -> None:
    agent, power = seen(5, "up?", name="agent"), seen(5, "off")
    failed = Happened(6, str(WEB), Sort.TRIED, "service.start", "failed", "no such file")
    record(tmp_path, stands(4, "acting"), agent, power, failed, seen(7, "1", name="bootable"))
    assert [*happenings_since(tmp_path, FOLLOWED, 0)] == [power, agent, failed]


def test_old_days_are_let_go_by_number_and_by_size(tmp_path: Path) -> None:
    weeks = [seen(day * DAY_S, "on") for day in range(6)]
    record(tmp_path / "few", *weeks, days=3)
    assert [one.name[-5:-3] for one in days(tmp_path / "few")] == ["04", "05", "06"]
    record(tmp_path / "small", *weeks, bytes_max=70_000)
    kept = [one.name[-5:-3] for one in days(tmp_path / "small")]
    assert kept[-1] == "06"
    assert len(kept) < 6
    assert known_at(tmp_path / "small", everything, 6 * DAY_S) == {N01: KnownThen({"power": "on"})}


def test_a_file_that_cannot_be_written_costs_nothing_else_and_is_told(tmp_path: Path) -> None:
    (tmp_path / "history-1970-01-02.db").write_bytes(b"no database " * 1_000)
    recorder = Recorder(tmp_path)
    recorder.note([seen(1, "on"), seen(DAY_S, "off"), seen(DAY_S, "on")])
    recorder.close()
    recorder = Recorder(tmp_path)
    assert known_at(tmp_path, everything, 5) == {N01: KnownThen({"power": "on"})}
    recorder.close()


@pytest.mark.parametrize("content", [b"", b"no database" * 500])
def test_a_day_that_cannot_be_read_is_told(tmp_path: Path, content: bytes) -> None:
    record(tmp_path, begun(0), seen(1, "on"))
    (day,) = days(tmp_path)
    for one in tmp_path.glob(f"{day.name}*"):
        one.unlink()
    day.write_bytes(content)
    for read in (
        lambda: last_happenings(tmp_path, everything, count_max=9),
        lambda: known_at(tmp_path, everything, 2),
    ):
        with pytest.raises(StorageError, match="cannot be read") as told:
            read()
        assert told.value.where == str(day)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("at_s", "today"), ("at_s", math.inf), ("entity", "n01"), ("entity", b"node:n01"),
        ("sort", "guessed"), ("name", b"power"), ("value", b"on"), ("note", b"bmc"),
    ],
)  # fmt: skip
def test_a_row_that_nobody_wrote_is_refused_by_its_file_and_number(
    tmp_path: Path, column: str, value: object
) -> None:
    record(tmp_path, begun(0), seen(1, "on"))
    (day,) = days(tmp_path)
    with closing(sqlite3.connect(day)) as connection, connection:
        connection.execute(f"UPDATE happened SET {column} = ? WHERE id = 2", (value,))
    for read in (
        lambda: last_happenings(tmp_path, everything, count_max=9),
        lambda: known_at(tmp_path, everything, WALL_S_MAX),
        lambda: list(happenings_since(tmp_path, FOLLOWED, 0)),
    ):
        # Not all of them ask for all rows.
        with suppress(StorageError):
            read()
    with pytest.raises(StorageError, match="cannot be read") as told:
        last_happenings(tmp_path, everything, count_max=9)
    assert told.value.where == f"{day.name}, table happened, row 2"


def test_what_does_not_fit_any_more_is_counted_and_then_all_may_be_told_anew(
    tmp_path: Path,
) -> None:
    recorder = Recorder(tmp_path, bytes_max=60_000)
    wide = "x" * 5_000
    for number in range(40):
        recorder.note([seen(number, wide, node_id(f"n{number}"))])

    def recovered() -> bool:
        recorder.note([seen(DAY_S, "on")])
        return recorder.recoveries == 1

    wait_for(recovered)
    recorder.close()
    told = last_happenings(tmp_path, everything, count_max=QUEUED_MAX)
    assert [one.value for one in told if one.sort is Sort.LOST] == ["40"]


ENTITIES = st.sampled_from([N01, node_id("n02"), WEB])
HAPPENINGS = st.one_of(
    st.builds(begun, st.just(0.0)),
    st.builds(
        seen,
        st.just(0.0),
        st.sampled_from(["on", "off", "on?", None]),
        ENTITIES,
        st.just("power"),
    ),
    st.builds(stands, st.just(0.0), st.sampled_from(["acting", "stuck"])),
    st.builds(seen, st.just(0.0), st.sampled_from(["up", "up?", None]), ENTITIES, st.just("agent")),
    st.builds(seen, st.just(0.0), st.sampled_from(["running", "failed"]), ENTITIES, st.just("run")),
    st.builds(lambda entity: Happened(0.0, str(entity), Sort.GONE), ENTITIES),
)


def plain(happened: list[Happened], at_s: float) -> dict[EntityId, KnownThen]:
    """What was known at a time, from the list of all that happened."""
    found: dict[EntityId, KnownThen] = {}
    for one in happened:
        if one.at_s > at_s:
            continue
        if one.sort is Sort.BEGUN:
            found = {}
            continue
        entity = parse_entity(one.entity)
        if one.sort is Sort.GONE:
            found.pop(entity, None)
            continue
        known = found.setdefault(entity, KnownThen())
        if one.sort is Sort.STANDS:
            known.condition, known.why = one.value, one.note
        else:
            assert one.name is not None
            known.observed.pop(one.name, None)
            if one.value is not None:
                known.observed[one.name] = one.value
    return {entity: known for entity, known in found.items() if known != KnownThen()}


def spread(drawn: list[Happened], rng: random.Random) -> list[Happened]:
    """These over some days, in their order."""
    at_s, happened = 0.0, []
    for one in drawn:
        at_s += rng.choice((1, 1, 1, DAY_S / 3, 2 * DAY_S))
        happened.append(msgspec.structs.replace(one, at_s=at_s))
    return happened


@given(st.lists(HAPPENINGS, max_size=25), st.integers(0, 2**32))
def test_any_time_over_any_days_is_as_a_plain_reading_of_all_says(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Happened], seed: int
) -> None:
    rng = random.Random(seed)
    happened = spread(drawn, rng)
    at_s = happened[-1].at_s if happened else 0.0
    folder = tmp_path_factory.mktemp("history")
    record(folder, *happened)
    for _ in range(5):
        asked = rng.uniform(0, at_s + 1)
        found = known_at(folder, everything, asked)
        assert {one: known for one, known in found.items() if known != KnownThen()} == plain(
            happened, asked
        )


@given(st.lists(HAPPENINGS, max_size=25), st.integers(0, 2**32))
def test_troubles_are_counted_over_days_as_over_a_plain_list(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Happened], seed: int
) -> None:
    happened = spread(drawn, random.Random(seed))
    folder = tmp_path_factory.mktemp("history")
    record(folder, *happened)
    counted = count_troubles(happenings_since(folder, FOLLOWED, 0), (), (), 0)
    assert counted == count_troubles(happened, (), (), 0)
