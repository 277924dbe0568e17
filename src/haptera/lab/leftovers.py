"""What a killed lab left running: found by its mark, on record or by descent, and ended."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

import msgspec

from haptera.lab import record, tree
from haptera.lab.init import clear_cgroups
from haptera.lab.layout import Places
from haptera.lab.tree import LabProcess
from haptera.runtime import clock

# Every process of a lab has it in the environment that it, or what it was forked from, began with.
MARK: Final = "HAPTERA_LAB"


class StartedProcess(msgspec.Struct, frozen=True):
    """One process that a lab started; pid and start time name it within one boot."""

    what: str
    pid: int
    started: int
    kernel_boot: str


def note_started(places: Places, what: str, pid: int) -> None:
    """Put a process on record; one that has ended already needs none."""
    if (process := tree.read_process(pid)) is not None:
        started = StartedProcess(what, pid, process.started, clock.kernel_boot())
        record.append(_file(places), msgspec.to_builtins(started))


def running(places: Places) -> dict[str, LabProcess]:
    """The processes on record that run, by what they are; of two the later."""
    found = {}
    for one in _started(places):
        process = tree.read_process(one.pid)
        if process is not None and process.started == one.started and not process.dead:
            found[one.what] = process
    return found


def end_leftovers(places: Places, cluster: UUID) -> None:
    """End all that an earlier lab of this cluster left, and begin the record anew.

    Raises:
        HapteraError: something would not end.
    """
    noted = {(one.pid, one.started) for one in _started(places)} | {*_services(places)}
    tree.end_all(lambda: _living(cluster, noted))
    clear_nodes(places)
    _file(places).unlink(missing_ok=True)


def clear_nodes(places: Places) -> None:
    """Remove the cgroups of systems that ended with their nodes, whose runtimes are gone, too."""
    for scratch in sorted(places.root.glob("nodes/*/run")):
        clear_cgroups(scratch)


def _living(cluster: UUID, noted: set[tuple[int, int]]) -> list[LabProcess]:
    """What is marked or on record, and what descends from it."""
    found = {
        process.pid: process
        for process in tree.processes()
        if (process.pid, process.started) in noted or _is_marked(process.pid, cluster)
    }
    found.update({process.pid: process for process in tree.descendants(list(found))})
    found.pop(os.getpid(), None)
    return [process for process in found.values() if not process.dead]


def _is_marked(pid: int, cluster: UUID) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # gone, or another user's
        return False
    return f"{MARK}={cluster}".encode() in environment.split(b"\0")


def _started(places: Places) -> Iterator[StartedProcess]:
    """What is on record since this machine was switched on."""
    try:
        lines = _file(places).read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            started = msgspec.json.decode(line, type=StartedProcess)
        except (ValueError, RecursionError):
            continue  # The last line of a lab that was killed while it wrote.
        if started.kernel_boot == clock.kernel_boot():
            yield started


def _services(places: Places) -> Iterator[tuple[int, int]]:
    """Services and their keepers, which have environments of their own and outlive all else.

    A keeper writes down who they are: a word, a pid, a start time; and which boot it was.
    """
    for file in places.root.glob("nodes/*/run/services/*/state"):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        if f"boot {clock.kernel_boot()}" in lines:
            for line in lines:
                if (
                    found := re.fullmatch(r"(?:service|keeper) ([0-9]+) ([0-9]+)", line)
                ) is not None:
                    yield int(found[1]), int(found[2])


def _file(places: Places) -> Path:
    return places.lab / "pids.jsonl"
