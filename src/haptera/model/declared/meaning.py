"""What a declared text stands for where more than data follows from it: what is run or opened."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NewType

from haptera.model.parts import Setting

# Settings of these types are code: words that are run, a program's path, a file whose contents can
# have code loaded, and a path that its module opens on the machine that it runs on.
Command = NewType("Command", str)
ProgramPath = NewType("ProgramPath", str)
CodeFile = NewType("CodeFile", str)
HostPath = NewType("HostPath", str)


class Meaning(StrEnum):
    """The sort of a field, in words; changing it changes what its machine runs or opens."""

    COMMAND = "a command"
    PROGRAM_PATH = "the path of a program"
    CODE_FILE = "a file that can load code"
    HOST_PATH = "a path that is opened there"
    USER = "the user that something runs as"


MEANINGS: Final[Mapping[Any, Meaning]] = {
    Command: Meaning.COMMAND,
    ProgramPath: Meaning.PROGRAM_PATH,
    CodeFile: Meaning.CODE_FILE,
    HostPath: Meaning.HOST_PATH,
}
_EACH: Final = "*"
# What fields are called that are run or opened, whole or in a part.
_NAMED: Final = re.compile(
    r"command|program|exec|argument|script|shell|words|path|folder|director|file|conf|recipe|source"
    r"|attach|detach|hook|health|ready|output|loader|plug|uri|url|kernel"
)


def looks_like_code(name: str) -> bool:
    """Whether a field of this name is likely to be run or opened.

    >>> [looks_like_code(name) for name in ("wrapper_command", "conf", "port")]
    [True, True, False]
    """
    return _NAMED.search(name) is not None


def new_code(
    declared: Iterable[Setting] | None, before: Mapping[str, object], after: Mapping[str, object]
) -> Iterator[str]:
    """The settings that are code, and are given anew or otherwise than before.

    Of a module that does not declare its settings, any may be: code, and all of it.

    >>> declared = [Setting("attach", code=("",)), Setting("port")]
    >>> [*new_code(declared, {"port": 1}, {"port": 2, "attach": "sh -c id"})]
    ['attach']
    >>> [*new_code(None, {"port": 1}, {"port": 2})]
    ['port']
    """
    if declared is None:
        yield from (name for name, one in after.items() if before.get(name) != one)
        return
    for one in declared:
        for path in one.code:
            keys = path.split(".") if path else []
            was = [*_at(before.get(one.name), keys)]
            # What is left out, or taken out of a list, runs no longer.
            if any(value not in was for value in _at(after.get(one.name), keys)):
                yield f"{one.name}.{path}".rstrip(".")


def _at(value: object, path: Sequence[str]) -> Iterator[tuple[tuple[str, ...], object]]:
    """What stands by this path below a value, each with the way to it."""
    if value is None:
        return
    if not path:
        yield (), value
        return
    first, *rest = path
    match value:
        case dict():
            items = [(str(name), one) for name, one in value.items()]
        case list() | tuple():
            items = [(str(name), one) for name, one in enumerate(value)]
        case _:
            yield (), value  # no value of its type; a module in another language may take it
            return
    for name, one in items:
        if first in (_EACH, name):
            yield from (((name, *way), found) for way, found in _at(one, rest))
