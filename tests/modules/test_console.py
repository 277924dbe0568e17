"""The record of a console: the last of what was sent, in two bounded files, never absent."""

import os
from pathlib import Path

import pytest

from haptera.daemon.logs import Logs
from haptera.model.entity import EntityId, node_id
from haptera.modules import console
from haptera.modules.console import ConsoleRecord, record_of
from haptera.runtime.network.peer_messages import LogAsked, LogTold, Unable

NODE = node_id("n01")


@pytest.mark.parametrize("length", [1, 700, 4_096, 70_000])
def test_two_bounded_files_hold_the_end_of_what_was_sent(tmp_path: Path, length: int) -> None:
    file = record_of(tmp_path, "n01")
    record = ConsoleRecord(file)
    sent = b""
    for number in range(3 * console.RECORD_BYTES_MAX // max(length, 4_096)):
        data = (b"%d\r\n" % number).rjust(length, b".")
        record.add(data)
        sent += data
    now = file.read_bytes()
    assert sent.endswith(now)
    before = file.with_name("n01.console.1")
    if len(sent) > console.RECORD_BYTES_MAX:
        assert before.read_bytes()[-console.REPEATED_BYTES :] == now[: console.REPEATED_BYTES]
        assert sent.endswith(before.read_bytes() + now[console.REPEATED_BYTES :])
    for one in tmp_path.iterdir():
        assert one.stat().st_size <= console.RECORD_BYTES_MAX + length
        assert one.stat().st_mode & 0o077 == 0


def test_a_node_is_asked_for_its_console_and_for_nothing_else_there(tmp_path: Path) -> None:
    ConsoleRecord(record_of(tmp_path, "n01")).add(b"it boots\r\n")
    ConsoleRecord(record_of(tmp_path, "n02")).add(b"another's\r\n")
    logs = Logs(tmp_path / "home", (), consoles=[tmp_path])
    answer = logs.answer(LogAsked(NODE), [NODE])
    assert isinstance(answer, LogTold)
    assert answer.text == b"it boots\r\n"
    for unknown in (node_id("n02"), EntityId("node", "../n02", None)):
        assert isinstance(logs.answer(LogAsked(unknown), [NODE]), Unable)


def test_of_a_node_that_two_modules_recorded_the_newer_record_is_shown(tmp_path: Path) -> None:
    for age, module in enumerate(("old", "new", "never")):
        (tmp_path / module).mkdir()
        if module != "never":
            file = record_of(tmp_path / module, "n01")
            ConsoleRecord(file).add(module.encode())
            os.utime(file, (age, age))
    folders = [tmp_path / module for module in ("never", "new", "old")]
    answer = Logs(tmp_path / "home", (), consoles=folders).answer(LogAsked(NODE), [NODE])
    assert isinstance(answer, LogTold)
    assert answer.text == b"new"


def test_a_node_whose_console_was_never_recorded_says_so(tmp_path: Path) -> None:
    answer = Logs(tmp_path, (), consoles=[tmp_path]).answer(LogAsked(NODE), [NODE])
    assert answer == Unable(
        "node:n01 has no record of its console yet:"
        " `record_consoles: true` in the settings of its power module begins one"
    )
