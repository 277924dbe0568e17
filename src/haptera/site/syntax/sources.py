"""The files that a site is written in: one, a folder of them, and what they include."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from haptera.model.errors import HapteraError, InputError, LimitError, ParseError, UnreadableError
from haptera.rest.schemas import SiteFile
from haptera.site.syntax.tree import Branch, Errors, Leaf, Series, Tree, leaf
from haptera.site.syntax.yaml_tree import read_foreign_yaml, read_yaml

# Of all files of a site together.
SITE_BYTES_MAX: Final = 4_194_304
FILES_MAX: Final = 256
SUFFIXES: Final = (".yaml", ".yml")
STANDARD_INPUT: Final = "standard input"
INCLUDE: Final = "include"

# What YAML cannot hold, nor any text that is sent as UTF-8.
_UNFIT: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]"
)


def gather(paths: Sequence[Path]) -> tuple[SiteFile, ...]:
    """All files of a site, each once: those named, those of folders, and what they include.

    Raises:
        InputError: some cannot be read, or they are too many.
    """
    read: dict[Path, SiteFile] = {}
    wrong: list[HapteraError] = []
    left = SITE_BYTES_MAX
    waiting = [(path, str(path)) for path in reversed(paths)]
    while waiting:
        path, where = waiting.pop()
        try:
            if path.is_dir():
                waiting += [(one, where) for one in reversed(_of_folder(path, where))]
            elif (known := path.resolve()) not in read:
                _check_number(len(read), where)
                text = _read(path, where, left)
                left -= len(text.encode())
                read[known] = source = SiteFile(str(path), text, included=True)
                waiting += reversed([(path.parent / one, at) for one, at in _includes(source)])
        except HapteraError as error:
            wrong.append(error)
    if wrong:
        raise InputError(wrong)
    return tuple(read.values())


def constants_of(path: Path) -> dict[str, str]:
    """What the templates of a site may name: `python`, and `site`, the folder of its first file."""
    return {"python": sys.executable, "site": str(folder_of(path))}


def folder_of(path: Path) -> Path:
    """The folder that a file is in, or that it is."""
    place = path.resolve()
    return place if place.is_dir() else place.parent


def from_standard_input() -> SiteFile:
    """What is written to standard input, which can include nothing.

    Raises:
        HapteraError: it is too long, or no text.
    """
    data = sys.stdin.buffer.read(SITE_BYTES_MAX + 1)
    return SiteFile(STANDARD_INPUT, _decoded(data, STANDARD_INPUT, SITE_BYTES_MAX))


def read_foreign_tree(source: SiteFile, errors: Errors) -> Tree:
    """The tree of a file of YAML that another program reads.

    Raises:
        HapteraError: the text is no YAML, or cannot be.
    """
    _check_text(source)
    return read_foreign_yaml(source.text, source.name, errors)


def read_tree(source: SiteFile, errors: Errors) -> Tree:
    """The tree of a file.

    Raises:
        HapteraError: the text is no YAML, or cannot be.
    """
    _check_text(source)
    if source.name.endswith(".toml"):
        raise ParseError("TOML is not read", where=source.name, do="write it as YAML")
    return read_yaml(source.text, source.name, errors)


def _check_text(source: SiteFile) -> None:
    if (unfit := _UNFIT.search(source.text)) is not None:
        line = source.text.count("\n", 0, unfit.start()) + 1
        column = unfit.start() - source.text.rfind("\n", 0, unfit.start())
        raise ParseError(
            f"the character U+{ord(unfit[0]):04X} cannot be in such a file",
            where=f"{source.name}:{line}:{column}",
            do="take it out",
        )


def included(tree: Tree) -> Iterator[Leaf]:
    """The files that a file names under `include`.

    Raises:
        HapteraError: what it names are no files.
    """
    entries = tree.entries if isinstance(tree, Branch) else ()
    for key, value in entries:
        if key.text == INCLUDE:
            yield from map(leaf, value.items if isinstance(value, Series) else [value])


def _of_folder(folder: Path, where: str) -> list[Path]:
    try:
        files = sorted(one for one in folder.iterdir() if one.suffix in SUFFIXES)
    except OSError as error:
        raise _unreadable(folder, where, error) from None
    found = [one for one in files if one.is_file() and not one.name.startswith(".")]
    if not found:
        raise ParseError(
            f"no site file is in {folder}",
            where=where,
            do=f"write one whose name ends in {', '.join(SUFFIXES)}",
        )
    return found


def _check_number(read: int, where: str) -> None:
    if read == FILES_MAX:
        raise LimitError(f"a site has {FILES_MAX} files at most", where=where, do="write fewer")


def _read(path: Path, where: str, size_bytes_max: int) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(size_bytes_max + 1)
    except OSError as error:
        raise _unreadable(path, where, error) from None
    return _decoded(data, str(path), size_bytes_max)


def _unreadable(path: Path, where: str, error: OSError) -> HapteraError:
    named = "" if where == str(path) else f"{path} "
    what = f"{named}cannot be read: {error.strerror}"
    return UnreadableError(what, where=where, do="name a site file")


def _decoded(data: bytes, name: str, size_bytes_max: int) -> str:
    if len(data) > size_bytes_max:
        raise LimitError(
            f"a site takes {SITE_BYTES_MAX} bytes at most", where=name, do="use node-sets"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"byte {error.start + 1} is not UTF-8"
        raise UnreadableError(what, where=name, do="write it as UTF-8 text") from None


def _includes(source: SiteFile) -> list[tuple[str, str]]:
    """The includes of a file, and their places; errors are reported where all is read."""
    if INCLUDE not in source.text:
        return []
    try:
        return [(one.text, str(one.place)) for one in included(read_tree(source, Errors()))]
    except HapteraError:
        return []
