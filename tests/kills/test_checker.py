import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.kills import checker

Rows = list[dict[str, Any]]
WEB = "service:web@n1"
S = 1_000_000_000


def sent(value: int) -> dict[str, Any]:
    return {"entity": WEB, "sent": value}


def acked(value: int, revision: int, epoch: int = 7) -> dict[str, Any]:
    return {"entity": WEB, "acked": value, "epoch": epoch, "revision": revision}


def taken(command: str, power: str = "on", at_s: float = 0) -> dict[str, Any]:
    row = {"command": command, "power": power, "verdict": "accepted"}
    return {"at_ns": int(at_s * S), **row}


def refused(command: str, at_s: float = 0) -> dict[str, Any]:
    return {**taken(command, at_s=at_s), "verdict": "refused"}


def effect(command: str, power: str = "on", at_s: float = 0) -> dict[str, Any]:
    return {"at_ns": int(at_s * S), "command": command, "effect": power}


def read(power: str, at_s: float = 0) -> dict[str, Any]:
    return {"at_ns": int(at_s * S), "read": power}


def started(port: int, within: str = "alone") -> dict[str, Any]:
    return {"started": port, "with": within}


HEALED_ONCE = [
    read("off"),
    taken("a-1"),
    read("off"),
    effect("a-1"),
    read("on"),
    taken("by-hand-1", "off"),
    effect("by-hand-1", "off"),
    taken("a-2"),
    effect("a-2"),
]


def write_rows(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_state(path: Path, port: int, history: list[tuple[int, int]]) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE store (epoch); INSERT INTO store VALUES (7);"
        "CREATE TABLE desired (entity, name, value);"
        "CREATE TABLE history (entity, name, after, revision);"
    )
    connection.execute("INSERT INTO desired VALUES (?, 'port', ?)", (WEB, port))
    rows = [(WEB, *one) for one in history]
    connection.executemany("INSERT INTO history VALUES (?, 'port', ?, ?)", rows)
    connection.commit()
    connection.close()
    return path


def test_records_in_order_are_found_right(tmp_path: Path) -> None:
    writes = write_rows(tmp_path / "writes", [sent(1), acked(1, 4), sent(2)])
    state = write_state(tmp_path / "state.db", 2, [(1, 4), (2, 5)])
    commands = write_rows(tmp_path / "commands", HEALED_ONCE)
    starts = write_rows(tmp_path / "starts", [started(1), started(2)])

    assert checker.check(writes, state, {"n1": commands}, {"n1": starts}) == []
    assert checker.steps(checker.read_rows(commands), checker.read_rows(starts)) == 4


def test_each_file_is_looked_into(tmp_path: Path) -> None:
    writes = write_rows(tmp_path / "writes", [sent(1), acked(1, 4)])
    state = write_state(tmp_path / "state.db", 3, [])
    commands = write_rows(tmp_path / "commands", [taken("a-1"), taken("a-1")])

    starts = write_rows(tmp_path / "starts", [started(1), started(2, "together")])

    assert checker.check(writes, state, {"n1": commands}, {"n1": starts}) == [
        f"lost: {WEB} has 3, not one of [1]",
        f"forgotten: ('{WEB}', 1, 7, 4) was acknowledged",
        "n1: twice: a-1",
        "n1: together: a-1 and a-1",
        "n1: unread: a-1 after a-1",
        "n1: together: at 2",
    ]


@pytest.mark.parametrize(
    ("rows", "port", "lost"),
    [
        ([sent(1), acked(1, 4)], 1, False),
        ([sent(1), acked(1, 4), sent(2)], 2, False),
        ([sent(1), sent(2)], None, False),
        ([sent(1), sent(2), acked(2, 4)], 1, True),
        ([sent(1), acked(1, 4)], None, True),
        ([sent(1), acked(1, 4), sent(2), acked(2, 5), sent(3)], 1, True),
    ],
)
def test_the_last_acknowledged_value_or_a_later_one_is_in_force(
    rows: Rows, port: int | None, lost: bool
) -> None:
    desired = {} if port is None else {WEB: port}

    assert bool(list(checker.lost_writes(rows, desired))) is lost


def test_an_acknowledged_value_that_was_never_in_force_is_found() -> None:
    rows = [sent(1), acked(1, 4), sent(2), acked(2, 5)]

    assert list(checker.forgotten_writes(rows, {(WEB, 1, 7, 4), (WEB, 2, 7, 6)})) == [
        f"forgotten: ('{WEB}', 2, 7, 5) was acknowledged"
    ]


def test_revisions_grow_within_an_epoch() -> None:
    right = [acked(1, 4), acked(2, 5), acked(3, 1, epoch=8)]
    again = [acked(1, 4), acked(2, 4)]

    assert list(checker.unordered_writes(right)) == []
    assert list(checker.unordered_writes(again)) == ["unordered: revision 4 after 4"]


def test_an_id_that_comes_twice_is_found_even_refused() -> None:
    rows = [taken("a-1"), effect("a-1"), refused("a-1")]

    assert list(checker.commands_twice(rows)) == ["twice: a-1"]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (HEALED_ONCE, []),
        ([taken("a-1"), taken("a-2"), effect("a-1")], ["together: a-1 and a-2"]),
        ([taken("a-1"), refused("a-2"), effect("a-1")], ["together: a-1 and a-2"]),
        ([taken("a-1"), refused("by-hand-1"), effect("a-1"), taken("a-2")], []),
        ([taken("a-1"), effect("a-0"), taken("a-2")], ["together: a-1 and a-2"]),
    ],
)
def test_a_command_before_the_last_ones_effect_is_found(rows: Rows, found: list[str]) -> None:
    assert list(checker.commands_in_flight_together(rows)) == found


@pytest.mark.parametrize(
    ("between", "unread"),
    [
        ([], True),
        ([effect("a-1")], True),
        ([read("off"), effect("a-1")], True),
        ([read("off", 1.9)], True),
        ([effect("a-1"), read("on")], False),
        ([read("off", 2.1)], False),
        ([effect("by-hand-1"), read("on")], True),
    ],
)
def test_a_command_sent_before_the_last_ones_outcome_was_read_is_found(
    between: Rows, unread: bool
) -> None:
    rows = [taken("a-1"), *between, refused("a-2", 3)]

    found = ["unread: a-2 after a-1"] if unread else []
    assert list(checker.commands_sent_unread(rows)) == found


def test_a_refused_command_leaves_nothing_to_be_read() -> None:
    assert list(checker.commands_sent_unread([refused("a-1"), taken("a-2")])) == []


def test_a_command_for_the_power_that_there_is_is_found() -> None:
    rows = [taken("a-1"), effect("a-1"), taken("a-2")]

    assert list(checker.needless_commands(HEALED_ONCE)) == []
    assert list(checker.needless_commands(rows)) == [
        f"needless: a-2, as power was on, after {rows[:2]}"
    ]
    assert list(checker.needless_commands([*rows[:2], {"found": "off"}, rows[2]])) == []
