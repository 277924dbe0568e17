"""A service may put anything in place of its keeper's notes: it runs in their folder."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from haptera.keeping import keeper, procfs
from haptera.keeping.home import Home
from haptera.kinds.service import Run

RUNNING = "boot {boot}\nservice {pid} {started}\nkeeper {pid} {started}\ndigest d\n"
Put = Callable[[Path], object]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """The home of a service that has ended with 3, and said so."""
    (tmp_path / "home").mkdir()
    one = Home(tmp_path / "home")
    told = RUNNING.format(boot=procfs.boot_id(), pid=os.getpid(), started=1)
    (one.path / keeper.STATE).write_text(told)
    (one.path / keeper.STATUS).write_text("3")
    one.output.write_text("no room\n")
    (tmp_path / "key.pem").write_text("a key\n")
    return one


PUT: dict[str, Put] = {
    "a link": lambda path: path.symlink_to("../key.pem"),
    "a link to nothing": lambda path: path.symlink_to("../nowhere"),
    "a FIFO": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "rubbish": lambda path: path.write_bytes(b"\xff\0 boot\n\x1b[2J"),
    "much": lambda path: path.write_bytes(b"x" * (1 << 20)),
}


@pytest.mark.parametrize("name", [keeper.STATE, keeper.STATUS, keeper.OUTPUT, keeper.EXCEEDED])
@pytest.mark.parametrize("put", PUT.values(), ids=PUT)
def test_whatever_is_put_in_place_of_a_note_is_not_followed_and_not_waited_for(
    put: Put, name: str, home: Home
) -> None:
    (home.path / name).unlink(missing_ok=True)
    put(home.path / name)

    assert home.run() in (Run.STOPPED, Run.FAILED)
    said = home.how_it_ended()
    assert "key" not in said
    assert said.isprintable()


def test_no_file_is_made_where_a_link_leads(home: Home) -> None:
    (home.path / keeper.STOP).symlink_to("../nowhere")
    home.expect_end()
    assert not (home.path.parent / "nowhere").exists()


def test_a_service_that_left_its_notes_alone_is_told_as_it_was(home: Home) -> None:
    assert (home.run(), home.how_it_ended()) == (Run.FAILED, "it ended with status 3: no room")
    home.expect_end()
    assert home.run() is Run.STOPPED
