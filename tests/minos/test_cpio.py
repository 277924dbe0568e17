"""The archive as other tools read it."""

import shutil
import subprocess

import pytest

from haptera.minos.cpio import archive, character_device, file, folder, link, program

ENTRIES = [
    program("init", b"#!/bin/sh\n", "init"),
    file("lib/python/os.pyc", b"12345", "standard library"),
    link("bin/sh", "busybox", "busybox"),
    character_device("dev/console", 5, 1, "init"),
    folder("proc", "init"),
]


def test_the_order_in_which_entries_are_named_changes_nothing() -> None:
    assert archive(ENTRIES) == archive(reversed(ENTRIES))


def test_another_tool_lists_all_of_it_with_the_folders_between() -> None:
    if shutil.which("cpio") is None:
        pytest.skip("cpio is missing: apt install cpio")
    listed = subprocess.run(
        ["cpio", "-itv", "--quiet", "--numeric-uid-gid"],
        input=archive(ENTRIES),
        capture_output=True,
        check=True,
    ).stdout.decode()
    rows = [(line.split()[0], line.split()[2:4], line.split()[-1]) for line in listed.splitlines()]
    assert [(mode, name) for mode, _, name in rows] == [
        ("drwxr-xr-x", "bin"),
        ("lrwxrwxrwx", "busybox"),
        ("drwxr-xr-x", "dev"),
        ("crw-------", "dev/console"),
        ("-rwxr-xr-x", "init"),
        ("drwxr-xr-x", "lib"),
        ("drwxr-xr-x", "lib/python"),
        ("-rw-r--r--", "lib/python/os.pyc"),
        ("drwxr-xr-x", "proc"),
    ]
    assert {tuple(owner) for _, owner, _ in rows} == {("0", "0")}
