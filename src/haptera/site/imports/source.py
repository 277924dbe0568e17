"""The files that an import reads."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from haptera.model.errors import LimitError, UnreadableError
from haptera.rest.schemas import SiteFile
from haptera.site.imports.clustershell import CONF_SUFFIX, YAML_SUFFIXES
from haptera.site.syntax.sources import FILES_MAX, STANDARD_INPUT

IMPORT_BYTES_MAX: Final = 33_554_432

_MAIN_FILE: Final = "groups.conf"
_FLAT_SUFFIX: Final = ".cfg"
# In ClusterShell's own folder: the flat file of old, and the folders of others.
_LEGACY: Final = "groups"
_FOLDERS: Final = ("groups.d", "groups.conf.d")


def read_source(name: str) -> SiteFile:
    """One file; - is standard input.

    Raises:
        HapteraError: it cannot be read, or is too long, or no text.
    """
    if name == "-":
        return _decoded(sys.stdin.buffer.read(IMPORT_BYTES_MAX + 1), STANDARD_INPUT)
    try:
        with Path(name).open("rb") as file:
            data = file.read(IMPORT_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else "no path"
        raise UnreadableError(
            f"cannot be read: {what}", where=name, do="name a file, or -"
        ) from None
    return _decoded(data, name)


def read_group_files(names: Sequence[str]) -> list[SiteFile]:
    """Files of ClusterShell's, and those of folders.

    A folder, or the groups.conf in it, stands for all that ClusterShell would find from there;
    a folder without a groups.conf for the group files in it.

    Raises:
        HapteraError: one cannot be read, or they are too many.
    """
    return read_sources(list(dict.fromkeys(path for name in names for path in _paths(name))))


def read_sources(names: Sequence[str]) -> list[SiteFile]:
    """These files.

    Raises:
        HapteraError: one cannot be read, or they are too many.
    """
    if len(names) > FILES_MAX:
        raise LimitError(f"an import takes {FILES_MAX} files at most", do="name fewer")
    return [read_source(name) for name in names]


def _paths(name: str) -> Iterator[str]:
    path = Path(name)
    if path.name == _MAIN_FILE and path.is_file():
        yield from _of_home(path.parent)
    elif not path.is_dir():
        yield name
    elif (path / _MAIN_FILE).is_file():
        yield from _of_home(path)
    else:
        found = [*_in(path, (*YAML_SUFFIXES, _FLAT_SUFFIX, CONF_SUFFIX))]
        if not found:
            what = "no file of ClusterShell's is in this folder"
            raise UnreadableError(
                what, where=name, do="name a groups.conf, or a folder like groups.d"
            )
        yield from found


def _of_home(home: Path) -> Iterator[str]:
    yield str(home / _MAIN_FILE)
    yield from _in(home / _FOLDERS[1], (CONF_SUFFIX,))
    yield from _in(home / _FOLDERS[0], YAML_SUFFIXES)
    legacy = home / _LEGACY
    if legacy.is_file():
        yield str(legacy)
    else:
        yield from _in(home / _FOLDERS[0], (_FLAT_SUFFIX,))


def _in(folder: Path, suffixes: Sequence[str]) -> Iterator[str]:
    """The files of a folder that end so, those of the first ending first."""
    try:
        files = sorted(one for one in folder.iterdir() if one.is_file())
    except FileNotFoundError:
        return
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise UnreadableError(what, where=str(folder), do="name a file") from None
    yield from (str(one) for suffix in suffixes for one in files if one.suffix == suffix)


def _decoded(data: bytes, name: str) -> SiteFile:
    if len(data) > IMPORT_BYTES_MAX:
        what = f"an import takes {IMPORT_BYTES_MAX} bytes at most"
        raise UnreadableError(what, where=name, do="import a part")
    try:
        return SiteFile(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        what = f"byte {error.start + 1} is not UTF-8"
        raise UnreadableError(what, where=name, do="write it as UTF-8 text") from None
