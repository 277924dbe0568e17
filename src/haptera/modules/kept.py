"""A small value that a module keeps in a file, for its next process."""

import os
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from haptera.modules.regular import open_regular
from haptera.sdk import Refused

Value = TypeVar("Value")
# A count that a file may hold: every number of this range is a float, too.
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]


def kept(file: Path, shape: type[Value]) -> Value | None:
    """The value in a file; None where there is no file, or it holds no value of this shape."""
    try:
        with open_regular(file) as opened:
            return msgspec.json.decode(opened.read(), type=shape)
    except (OSError, Refused, ValueError, RecursionError):
        return None


def keep(file: Path, value: object) -> bool:
    """Keep it, whole or not at all; false where it could not be kept: on a full disk, say."""
    draft = file.with_name(f"{file.name}-new")
    try:
        # What else has its name is neither opened nor followed.
        draft.unlink(missing_ok=True)
        with draft.open("xb") as opened:
            opened.write(msgspec.json.encode(value))
        os.replace(draft, file)
    except OSError:
        return False
    return True
