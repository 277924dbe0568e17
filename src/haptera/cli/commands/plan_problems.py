"""`haptera plan --problem`: problems from elsewhere, each answered before the next is read."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, Final

import click
import msgspec

from haptera.cli.input.problem_line import PROBLEM_BYTES_MAX, Outcome, answer_line, read
from haptera.cli.output.printing import Format, print_error
from haptera.cli.output.words import explained_lines, printable
from haptera.model.errors import HapteraError
from haptera.model.explained import Explained

EXIT_CODES: Final = {
    Outcome.CHAIN: 0,
    Outcome.NONE: 2,
    Outcome.BUDGET: 3,
    Outcome.MALFORMED: 64,
}

# How one problem is answered.
Answering = Callable[[bytes], tuple[Outcome, dict[str, Any]]]

# How the first line of a problem ends that goes on in the next.
_OPEN: Final = (b"{", b"[", b",", b":")


def answer_problems(file: str, output: str, answer: Answering = answer_line) -> int:
    """Answer all problems of a file or of standard input (`-`), so; the exit code."""
    if Format(output) is Format.YAML:
        raise HapteraError("problems are not answered as YAML", where="-o yaml", do="use -o json")
    worst = Outcome.CHAIN
    order = list(Outcome)
    count = 0
    with opened(file) as stream:
        for count, problem in enumerate(problems(stream), start=1):
            outcome, told = answer(problem)
            worst = max(worst, outcome, key=order.index)
            if Format(output) is Format.JSON:
                click.echo(json.dumps(told))  # All of it ASCII: no terminal can fail on it.
            else:
                _tell(count, told)
    if count == 0:
        where = "standard input" if file == "-" else file
        print_error(HapteraError("holds no problem", where=where, do="write one on each line"))
        return EXIT_CODES[Outcome.MALFORMED]
    return EXIT_CODES[worst]


def problems(stream: BinaryIO) -> Iterator[bytes]:
    """One a line; but where the first line goes on, all is one problem if it can be read so.

    None is longer than one byte more than it may be; lines of white space are no problems.
    """
    lines = _lines(stream)
    first = next(lines, None)
    if first is None:
        return
    if not first.rstrip().endswith(_OPEN):
        yield first
        yield from lines
        return

    held = [first]
    size = len(first)
    for line in lines:
        held.append(line)
        size += len(line)
        if size > PROBLEM_BYTES_MAX:
            break
    whole = b"".join(held)
    if len(held) > 1 and not _is_json(whole) and _is_json(held[1]):
        yield from held
        yield from lines
    else:
        yield whole[: PROBLEM_BYTES_MAX + 1]


def opened(file: str) -> AbstractContextManager[BinaryIO]:
    """A file of problems, or standard input (`-`).

    Raises:
        HapteraError: it cannot be read.
    """
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(file).open("rb")
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise HapteraError(what, where=file, do="name a file of problems") from error


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines that hold more than white space, each cut where it is surely too long."""
    while line := stream.readline(PROBLEM_BYTES_MAX + 1):
        rest, holds_more = line, bool(line.strip())
        while len(rest) > PROBLEM_BYTES_MAX and not rest.endswith(b"\n"):
            rest = stream.readline(PROBLEM_BYTES_MAX + 1)
            holds_more = holds_more or bool(rest.strip())
        if holds_more:
            yield line


def _tell(number: int, answer: dict[str, Any]) -> None:
    """One answer for people, a blank line before each but the first."""
    if number > 1:
        click.echo()
    for line in _told(answer):
        click.echo(printable(line))


def _told(answer: dict[str, Any]) -> Iterator[str]:
    if "error" in answer:
        yield f"malformed: {answer['error']['place']}: {answer['error']['text']}"
        return
    explained = msgspec.convert(answer["explained"], Explained) if "explained" in answer else None
    yield from _verdict(answer, [] if explained is None else explained.so_that)
    yield from (f"{label:<6} {line}" for label, line in explained_lines(explained))


def _verdict(answer: dict[str, Any], purposes: list[str | None]) -> Iterator[str]:
    """The chain, with what each link is for where that is told; or why there is none."""
    if answer["verdict"] != Outcome.CHAIN:
        yield f"no chain: {answer['reason']['text']}"
        return
    if not answer["chain"]:
        yield "nothing to do: the goal is met"
        return
    proven = ", and none costs less" if answer["optimal"] else ""
    doubts = ", if what is remembered is wrong" if answer["doubts"] else ""
    yield f"a chain that costs {answer['cost']}{proven}{doubts}"
    for place, (link, purpose) in enumerate(zip_longest(answer["chain"], purposes), start=1):
        yield f"{place}. {_link(link)}{'' if purpose is None else f', {purpose}'}"


def _link(link: dict[str, Any]) -> str:
    if "do" in link:
        return str(link["do"])
    return f"{link['look']}, {'hoping for' if link['hoped'] else 'expecting'} {link['expect']}"


def _is_json(text: bytes) -> bool:
    try:
        read(text)
    except HapteraError:
        return False
    return True
