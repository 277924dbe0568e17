"""The place of a module of one's own."""

import msgspec

from haptera.model.parts import Context


class ModulePlace(msgspec.Struct, frozen=True):
    """A module as a site names it: Python's, "module:attribute", or any command.

    Python's is installed, or in the `folder`; a command's words stand for themselves. What a site
    declares itself is in JSON.
    """

    name: str
    context: Context
    folder: str
    place: str | None = None
    command: tuple[str, ...] = ()
    declares: str | None = None
