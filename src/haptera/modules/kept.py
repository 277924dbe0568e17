"""A small value that a module keeps in a file, for its next process."""

import os
from pathlib import Path
from typing import TypeVar

import msgspec

Value = TypeVar("Value")


def kept(file: Path, shape: type[Value]) -> Value | None:
    """The value in a file; None where there is no file, or it holds no value of this shape."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=shape)
    except (FileNotFoundError, ValueError, RecursionError):
        return None


def keep(file: Path, value: object) -> None:
    """Keep it, whole or not at all."""
    draft = file.with_name(f"{file.name}-new")
    draft.write_bytes(msgspec.json.encode(value))
    os.replace(draft, file)
