"""Files that are named from outside: opened only where nobody but root, or this user, made them."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from haptera.model.errors import HapteraError

LINKS_MAX: Final = 40
_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_DO: Final = "give it to root, writable by nobody else, with all folders above it"


def owned(named: str) -> Path:
    """A regular file, or a folder, that is as root or this process' user has made it.

    So are all folders and links on the way to it. Nobody else can put another in its place.

    Raises:
        HapteraError: it is not there, is something else, or somebody else may change it.
    """
    place, state = Path("/"), os.stat("/")
    try:
        for place, state in _way(named):
            _check(named, place, state)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise HapteraError(f"{named}: {reason}", do="name a file that is there") from None
    if not stat.S_ISREG(state.st_mode) and not stat.S_ISDIR(state.st_mode):
        raise HapteraError(f"{named} is no regular file", do="name one")
    return place


def _way(named: str) -> Iterator[tuple[Path, os.stat_result]]:
    """All that leads to a path, the links that are followed among it, and the place itself."""
    place, left, links = Path("/"), [*Path(named).absolute().parts], 0
    while left:
        part = left.pop(0)
        one = place.parent if part == ".." else place / part
        state = one.lstat()
        yield one, state
        if not stat.S_ISLNK(state.st_mode):
            place = one
        elif (links := links + 1) > LINKS_MAX:
            raise ValueError("too many links lead to it")
        else:
            # An absolute one begins at the root again, as joining has it.
            left = [*Path(os.readlink(one)).parts, *left]


def _check(named: str, place: Path, state: os.stat_result) -> None:
    if state.st_uid not in (0, os.geteuid()):
        raise HapteraError(f"{named}: {place} belongs to user {state.st_uid}", do=_DO)
    # In a sticky folder nobody else can replace what is there.
    shared = stat.S_ISDIR(state.st_mode) and state.st_mode & stat.S_ISVTX
    if state.st_mode & _BY_OTHERS and not stat.S_ISLNK(state.st_mode) and not shared:
        raise HapteraError(f"{named}: others than its owner may write {place}", do=_DO)
