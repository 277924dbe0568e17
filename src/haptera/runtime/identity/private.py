"""Files and directories for their owner only; a file is there whole or not at all."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from haptera.model.errors import Code, HapteraError


def private_directory(path: Path) -> Path:
    """Make a directory for its owner only; take one that is there if no other may write in it.

    Raises:
        HapteraError: it cannot be made, or others may write in it.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = path.stat().st_mode
    except OSError as error:
        raise HapteraError(
            f"no directory can be made: {error.strerror}",
            where=str(path),
            do="give another",
            code=Code.FILE_UNWRITABLE,
        ) from error
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise HapteraError("others may write here", where=str(path), do=f"chmod 700 {path}")
    return path


def write_private(path: Path, content: bytes) -> None:
    """Put a file in place; it survives this process, though not a power cut."""
    _draft(path, content).rename(path)


def write_durable(path: Path, content: bytes) -> None:
    """Put a file in place; it survives a power cut."""
    draft = _draft(path, content)
    sync(draft)
    draft.rename(path)
    sync(path.parent)


def _draft(path: Path, content: bytes) -> Path:
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return draft


def open_unlinked(path: Path) -> BinaryIO:
    """Open a file to read that another may have put there: no link to ours, nothing that blocks.

    Raises:
        OSError: there is none, or it is no plain file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "no plain file", str(path))
    return file


def sync(path: Path) -> None:
    """Have a file, or the names in a directory, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
