"""Files of planning problems, one a line, each read before the next."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO, Final

from haptera.model.errors import HapteraError, UnreadableError
from haptera.planner.explain.problem_line import PROBLEM_BYTES_MAX, read

# How the first line of a problem ends that goes on in the next.
_OPEN: Final = (b"{", b"[", b",", b":")


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
        return open(file, "rb")
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise UnreadableError(what, where=file, do="name a file of problems") from error


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines that hold more than white space, each cut where it is surely too long."""
    while line := stream.readline(PROBLEM_BYTES_MAX + 1):
        rest, holds_more = line, bool(line.strip())
        while len(rest) > PROBLEM_BYTES_MAX and not rest.endswith(b"\n"):
            rest = stream.readline(PROBLEM_BYTES_MAX + 1)
            holds_more = holds_more or bool(rest.strip())
        if holds_more:
            yield line


def _is_json(text: bytes) -> bool:
    try:
        read(text)
    except HapteraError:
        return False
    return True
