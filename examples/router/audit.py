"""Reads what all programs noted, and says whether a message was lost, doubled or out of order.

    audit.py FOLDER

It knows nothing of channels: a record has a line for each message, in order, and each line the
message's number, its origin, and its digest.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

from record import PROCESS

# The words of a line before the digests of what was said because of it.
_WORDS: Final = 6


class WrongError(Exception):
    """A message was lost, doubled, altered or out of order."""


class Process(NamedTuple):
    """The program that noted it; of one rank, a later process is higher."""

    group: str
    rank: int
    placement: int
    starts: int

    @classmethod
    def of(cls, name: str) -> Self:
        group, *numbers = name.split(".")
        return cls(group, *map(int, numbers))

    def __str__(self) -> str:
        return ".".join(map(str, self))


@dataclass(frozen=True, slots=True)
class Line:
    """A message that a process was given, and what it said because of it."""

    number: int
    source: str
    incarnation: int
    source_number: int
    epoch: int
    digest: str
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, words: list[str]) -> Self:
        number, source, incarnation, source_number, epoch, digest = words[:_WORDS]
        numbers = (int(incarnation), int(source_number), int(epoch))
        return cls(int(number), source, *numbers, digest, tuple(words[_WORDS:]))


Records = Mapping[Process, list[str]]


def audit(records: Records) -> str:
    """The findings of all records together.

    Raises:
        WrongError: they contradict each other.
    """
    given = {group: input_of(group, records) for group in ("reflector", "out")}
    feeds = {process: lines for process, lines in records.items() if process.group == "feed"}
    for process in feeds:
        check_source(f"feed.{process.rank}", given["reflector"], feeds)
    check_said([one for line in given["reflector"] for one in line.outputs], given["out"])
    epochs = [line.epoch for line in given["out"]]
    if epochs != sorted(epochs):
        raise WrongError("a leader has spoken after a later one")
    return (
        f"{len(given['reflector'])} messages of {len(feeds)} shims to the reflectors, "
        f"{len(given['out'])} of {len(set(epochs))} leaders from them: each once, and in order"
    )


def input_of(group: str, records: Records) -> list[Line]:
    """The input of a group, as all its processes were given it."""
    seen: dict[int, Line] = {}
    reached: dict[int, tuple[Process, int]] = {}
    for process in sorted(one for one in records if one.group == group):
        if not records[process]:  # It was killed, or moved, before it began.
            reached[process.rank] = (process, 0)
            continue
        start, lines = followed(process, records[process])
        for line in lines:
            if seen.setdefault(line.number, line) != line:
                raise WrongError(f"{process} was given another message {line.number}: {line}")
        reached[process.rank] = (process, start + len(lines))
    for process, last in reached.values():
        if last != len(seen):
            raise WrongError(f"{process} has come to {last} of {len(seen)}")
    return [seen[number] for number in sorted(seen)]


def followed(process: Process, noted: list[str]) -> tuple[int, list[Line]]:
    """The beginning of one process, and its messages, each the next of the last."""
    start, lines = int(noted[0].removeprefix("start ")), [Line.of(one.split()) for one in noted[1:]]
    for number, line in enumerate(lines, start + 1):
        if line.number != number:
            raise WrongError(f"{process} was given {line.number} instead of {number}")
    return start, lines


def check_source(source: str, given: Iterable[Line], feeds: Records) -> None:
    """Each process of a shim was heard from its first message on, and the last one to its end."""
    heard: dict[int, list[Line]] = {}
    for line in given:
        if line.source == source:
            heard.setdefault(line.incarnation, []).append(line)
    said = [lines for process, lines in sorted(feeds.items()) if source == f"feed.{process.rank}"]
    for incarnation, lines in sorted(heard.items()):
        digests = [line.digest for line in lines]
        # A process that was killed before anything of it came is in no line.
        while said and said[0][: len(digests)] != digests:
            said.pop(0)
        if not said:
            raise WrongError(f"no process of {source} said what incarnation {incarnation} did")
        rest = len(said.pop(0)) - len(digests)
        if incarnation == max(heard) and rest:
            raise WrongError(f"{rest} messages of {source} were lost")


def check_said(said: list[str], given: list[Line]) -> None:
    """The hearers of the reflectors were given exactly what these said."""
    for index, (one, line) in enumerate(zip(said, given, strict=False)):
        if one != line.digest:
            raise WrongError(f"output {index + 1} of the reflectors came as {line}")
    if len(said) != len(given):
        raise WrongError(f"of {len(said)} outputs of the reflectors {len(given)} came")


def read(folder: Path) -> dict[Process, list[str]]:
    """All records of a folder."""
    return {Process.of(one.name): list(_lines(one)) for one in folder.iterdir()}


def _lines(path: Path) -> Iterator[str]:
    lines = path.read_text("utf-8").splitlines()
    return (line for line in lines if not line.startswith(PROCESS))


if __name__ == "__main__":
    try:
        print(audit(read(Path(sys.argv[1]))))  # noqa: T201
    except WrongError as wrong:
        sys.exit(f"audit: {wrong}")
