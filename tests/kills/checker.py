"""What must hold of the records that a run leaves, whatever was killed; knows nothing of haptera.

Four kinds of records: the writes as their writer saw them (`sent` before each request, `acked`
with the answer's epoch and revision), the state file at the end, what each BMC wrote down, and
what a service of each node did at each of its starts.
"""

import json
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
# By hand are the commands of the test itself; all others are haptera's own.
BY_HAND = "by-hand-"
# A labnode command has its whole effect within this time (the `late_s` that its steps declare).
LATE_NS = 2_000_000_000
# So many rows are shown that came before one that should not be there.
SHOWN_BEFORE = 8


def check(
    writes: Path, state: Path, commands: Mapping[str, Path], starts: Mapping[str, Path]
) -> list[str]:
    """All that is wrong in the records of one run."""
    rows = read_rows(writes)
    desired, history = read_state(state)
    return [
        *lost_writes(rows, desired),
        *forgotten_writes(rows, history),
        *unordered_writes(rows),
        *(f"{node}: {text}" for node, path in commands.items() for text in wrong_commands(path)),
        *(f"{node}: {text}" for node, path in starts.items() for text in started_twice(path)),
    ]


def steps(commands: Iterable[Row], starts: Sequence[Row]) -> int:
    """How many own commands a BMC took, and how often the service was started."""
    return sum(row.get("verdict") == "accepted" and is_own(row) for row in commands) + len(starts)


def wrong_commands(path: Path) -> list[str]:
    """All that is wrong in the record of one BMC."""
    rows = read_rows(path)
    return [
        *commands_twice(rows),
        *commands_in_flight_together(rows),
        *commands_sent_unread(rows),
        *needless_commands(rows),
    ]


def started_twice(path: Path) -> Iterator[str]:
    """No two processes of the service live at once."""
    for row in read_rows(path):
        if row["with"] != "alone":
            yield f"{row['with']}: at {row['started']}"


def read_rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_state(path: Path) -> tuple[dict[str, int], set[tuple[str, int, int, int]]]:
    """The desired ports by entity, and each port ever written: entity, value, epoch, revision."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        desired = connection.execute("SELECT entity, value FROM desired WHERE name = 'port'")
        history = connection.execute(
            "SELECT entity, after, epoch, history.revision FROM history, store WHERE name = 'port'"
        )
        return dict(desired), set(history)


# Writes


def lost_writes(rows: Sequence[Row], desired: Mapping[str, int]) -> Iterator[str]:
    """The last acknowledged value is in force, or one that was sent after it."""
    allowed: dict[str, list[int]] = {}
    for row in rows:
        if "acked" in row:
            allowed[row["entity"]] = [row["acked"]]
        else:
            allowed.setdefault(row["entity"], []).append(row["sent"])
    acknowledged = {row["entity"] for row in rows if "acked" in row}
    for entity in sorted(acknowledged):
        if desired.get(entity) not in allowed[entity]:
            yield f"lost: {entity} has {desired.get(entity)}, not one of {allowed[entity]}"


def forgotten_writes(rows: Iterable[Row], history: set[tuple[str, int, int, int]]) -> Iterator[str]:
    """Each acknowledged value was once in force, under the revision that was acknowledged."""
    for row in rows:
        if "acked" in row:
            written = (row["entity"], row["acked"], row["epoch"], row["revision"])
            if written not in history:
                yield f"forgotten: {written} was acknowledged"


def unordered_writes(rows: Iterable[Row]) -> Iterator[str]:
    """Within an epoch, one writer's acknowledgements have growing revisions."""
    last: dict[int, int] = {}
    for row in rows:
        if "acked" in row:
            if row["revision"] <= last.get(row["epoch"], -1):
                yield f"unordered: revision {row['revision']} after {last[row['epoch']]}"
            last[row["epoch"]] = row["revision"]


# Commands


def commands_twice(rows: Iterable[Row]) -> Iterator[str]:
    """No id is sent twice, taken or refused."""
    seen: set[str] = set()
    for row in rows:
        if "verdict" in row:
            if row["command"] in seen:
                yield f"twice: {row['command']}"
            seen.add(row["command"])


def commands_in_flight_together(rows: Iterable[Row]) -> Iterator[str]:
    """None is taken, and none of haptera's own so much as sent, before the last had its effect."""
    flying: Row | None = None
    for row in rows:
        if "verdict" in row:
            accepted = row["verdict"] == "accepted"
            if flying is not None and (accepted or (is_own(row) and is_own(flying))):
                yield f"together: {flying['command']} and {row['command']}"
            if accepted:
                flying = row
        elif "effect" in row and flying is not None and row["command"] == flying["command"]:
            flying = None


def commands_sent_unread(rows: Iterable[Row]) -> Iterator[str]:
    """Between two own commands power was read, after the first one's effect or latest time."""
    unread: Row | None = None
    effective = False
    for row in rows:
        if "verdict" in row and is_own(row):
            if unread is not None:
                yield f"unread: {row['command']} after {unread['command']}"
            if row["verdict"] == "accepted":
                unread, effective = row, False
        elif "effect" in row:
            effective |= unread is not None and row["command"] == unread["command"]
        elif "read" in row and unread is not None:
            late = row["at_ns"] >= unread["at_ns"] + LATE_NS
            unread = None if effective or late else unread


def needless_commands(rows: Iterable[Row]) -> Iterator[str]:
    """None of haptera's own asks for the power that there is."""
    power, before = "off", deque[Row](maxlen=SHOWN_BEFORE)
    for row in rows:
        if row.get("verdict") == "accepted" and is_own(row) and row["power"] == power:
            yield f"needless: {row['command']}, as power was {power}, after {[*before]}"
        # Found is what became of the machine without a command, as where its init ended.
        power = row.get("effect", row.get("found", row.get("read", power)))
        before.append(row)


def is_own(row: Row) -> bool:
    return not row["command"].startswith(BY_HAND)
