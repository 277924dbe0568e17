"""Values that a module keeps in files: whatever is there by now, a module goes on."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from haptera.modules.ipmi.event_log import LogCursor, LogInfo, advanced, measured
from haptera.modules.kept import keep, kept
from haptera.modules.redfish.event_logs import LogsCursor

IPMI = LogCursor(LogInfo(1, 10.0, ("1", "then", None, None)), "last", {"corrected": 3})
REDFISH = LogsCursor({"/log": ["a", "b"]}, {"Critical": 3})
DEEP = b'{"counts":' + b"[" * 100_000
SIZE = b"9" * 400
# Each in the place of a value of both shapes.
ODD = {
    "nothing": b"",
    "cut short": b'{"counts":{"Critical"',
    "deep": DEEP,
    "no object": b"[]",
    "no number": b'{"counts":{"Critical":"3"}}',
    "less than none": b'{"counts":{"Critical":-1}}',
    "more than a float holds": b'{"counts":{"Critical":' + SIZE + b"}}",
    "bytes": bytes(range(256)),
    "too few changes": b'{"info":{"entries":1,"used_percent":1,"changes":["1"]},"logs":3}',
}
Make = Callable[[Path], object]
PLACES: dict[str, Make] = {
    "FIFO": os.mkfifo,
    "folder": Path.mkdir,
    "link to itself": lambda place: place.symlink_to(place.name),
    "link to a device": lambda place: place.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("value", [IPMI, REDFISH], ids=["ipmi", "redfish"])
def test_what_was_kept_is_there_again(tmp_path: Path, value: LogCursor | LogsCursor) -> None:
    file = tmp_path / "file"
    assert kept(file, type(value)) is None
    assert keep(file, value)
    assert kept(file, type(value)) == value
    assert [*tmp_path.iterdir()] == [file]


@pytest.mark.parametrize("content", ODD.values(), ids=ODD.keys())
def test_what_is_of_another_shape_is_nothing(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert kept(file, LogCursor) is None
    assert kept(file, LogsCursor) is None


def test_each_change_of_a_log_that_was_kept_is_there(tmp_path: Path) -> None:
    assert keep(tmp_path / "file", IPMI)
    cursor = kept(tmp_path / "file", LogCursor)
    assert measured(advanced(cursor, IPMI.info, ""))


@pytest.mark.parametrize("make", PLACES.values(), ids=PLACES.keys())
def test_what_is_no_file_is_not_opened(tmp_path: Path, make: Make) -> None:
    """To read a FIFO, or to write to one, is to wait for ever."""
    file, draft = tmp_path / "file", tmp_path / "file-new"
    make(file)
    assert kept(file, LogsCursor) is None
    make(draft)
    # A folder is not taken away; all else is replaced.
    assert keep(file, REDFISH) is not file.is_dir()
    assert (kept(file, LogsCursor) == REDFISH) is file.is_file()


def test_what_cannot_be_kept_leaves_what_was_kept(tmp_path: Path) -> None:
    file = tmp_path / "file"
    assert keep(file, REDFISH)
    (tmp_path / "file-new").mkdir()
    assert not keep(file, LogsCursor())
    assert kept(file, LogsCursor) == REDFISH
