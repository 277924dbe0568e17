"""A module of haptera's own, as an entity: whether it runs, and with which version and settings."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec

from haptera.kinds import node
from haptera.model.declared.schema import Applied, Kind, Plain, Variable
from haptera.model.declared.secrets import SECRET, references
from haptera.model.errors import HapteraError, ParseError


class ModuleRun(StrEnum):
    UNKNOWN = "unknown"
    STOPPED = "stopped"
    RUNNING = "running"
    FAILED = "failed"


run = Variable(
    "module",
    "run",
    ModuleRun,
    {ModuleRun.UNKNOWN: 0, ModuleRun.STOPPED: 1, ModuleRun.RUNNING: 2, ModuleRun.FAILED: 3},
)
applied = Variable(
    "module",
    "applied",
    Applied,
    {Applied.UNKNOWN: 0, Applied.STALE: 1, Applied.CURRENT: 2},
)


def _object(text: str) -> None:
    try:
        settings = msgspec.json.decode(text, type=dict[str, Any])
    except (ValueError, RecursionError) as error:
        raise ParseError(f"no JSON object: {error}", do='write {"port": 80}, say') from None
    if any("\0" in one for one in _texts(settings)):
        raise HapteraError("settings have the character U+0000", do="remove it: it ends a text")
    if SECRET in settings:
        raise HapteraError("settings as a whole cannot be a secret", do="name it below a setting")
    for _ in references(settings):
        pass  # each names a secret


def _texts(value: object) -> Iterator[str]:
    """All texts in a JSON value, the names of its members among them."""
    match value:
        case str():
            yield value
        case dict():
            yield from value
            for one in value.values():
                yield from _texts(one)
        case list():
            for one in value:
                yield from _texts(one)
        case _:
            pass


version = Plain("module", "version", str, size_bytes_max=32)
settings = Plain("module", "settings", str, size_bytes_max=800, check=_object)

# When a person had its code loaded anew, as 20261123T013000Z.
reloaded = Plain("module", "reloaded", str, size_bytes_max=16)

kind = Kind("module", (run, applied), plain=(version, settings, reloaded), borrows=(node.agent,))
