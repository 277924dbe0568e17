"""The controllers of a site: where each is, and what serves the process that it runs in."""

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec

from haptera.model.parts import Context, Manifest
from haptera.runtime.processes.control import Control, Link, Source


class ControllerPlace(msgspec.Struct, frozen=True):
    """A controller as a site file names it: "module:attribute", installed or in the `folder`."""

    name: str
    place: str
    folder: str
    settings: dict[str, Any]

    def manifest(self) -> Manifest:
        """What is known of it before it runs: its code is run in its own process only."""
        return Manifest(self.name, "", Context.PARENT, (), (), controller=True)


class Controllers:
    """All controllers of a site. Needs a running loop."""

    def __init__(self, places: Iterable[ControllerPlace], source: Source) -> None:
        self._places = {one.name: one for one in places}
        self._source = source

    def place(self, name: str) -> ControllerPlace | None:
        """Where the controller of this name is; None where none has it."""
        return self._places.get(name)

    def serve(self, name: str, link: Link) -> "ServedController":
        """Serve a new process of this controller, until it is closed."""
        return ServedController(Control(name, self._source, link))


class ServedController:
    """What answers one process of a controller."""

    def __init__(self, control: Control) -> None:
        self.take = control.take
        self._task = asyncio.ensure_future(control.run())

    def close(self) -> None:
        self._task.cancel()
