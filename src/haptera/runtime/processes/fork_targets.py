"""Programs of a forked process: a module, a command or a controller, within its limits."""

import asyncio
import importlib
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.model.errors import Code, HapteraError
from haptera.runtime import clock
from haptera.runtime.processes.confinement.confine import confine
from haptera.runtime.processes.confinement.confinement import Confinement, confine_to
from haptera.runtime.processes.controllers import ControllerPlace
from haptera.runtime.processes.zygote import resolve
from haptera.sdk import Controller, Module
from haptera.sdk.controlling import serve_controller
from haptera.sdk.host import serve

# The descriptor on which a command finds its link.
LINK: Final = 3
# By about when the zygote, which imports this file first, has imported what it preloads.
_IMPORTED_AT_S: Final = clock.wall_s()


def module_process(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Be a module, until its link is closed."""
    _settle(f"module {arguments['name']}", arguments)
    if arguments["folder"] is not None:
        # Last, so that nothing in the folder is taken for a module of ours or of Python's.
        sys.path.append(arguments["folder"])
    _forget(arguments["place"])
    module = resolve(arguments["place"])
    if (declares := arguments.get("declares")) is not None:
        module = module(arguments["name"], declares)
    if not isinstance(module, Module):
        raise HapteraError(
            "is no module", where=arguments["place"], do="name a Module", code=Code.INVALID_MODULE
        )
    link = socket.socket(fileno=descriptors[0])
    asyncio.run(serve(module, link, now=clock.now_ns, wall_s=clock.wall_s))


def command_process(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Be a module that is a command; its link is descriptor LINK."""
    _settle(f"module {arguments['name']}", arguments)
    command, folder = [*arguments["command"]], Path(arguments["folder"])
    if descriptors[0] != LINK:
        os.dup2(descriptors[0], LINK)
        os.close(descriptors[0])
    os.set_inheritable(LINK, True)  # noqa: FBT003  it takes no name
    # Python ignores these, and a program would go on ignoring them.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        if folder.is_dir():
            os.chdir(folder)
        os.execvpe(command[0], command, {**os.environ, "HAPTERA_LINK": str(LINK)})
    except OSError as error:
        what = f"cannot be run: {error.strerror}"
        raise HapteraError(
            what, where=command[0], do="name a program that is there", code=Code.NOT_INSTALLED
        ) from None


def controller_process(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Be a controller, until its link is closed."""
    place = msgspec.convert(arguments, ControllerPlace)
    settings = place.settings | _object(arguments["desired"])
    _settle(f"control {place.name}", arguments)
    # Last, so that nothing in the folder is taken for a module of ours or of Python's.
    sys.path.append(place.folder)
    controller = resolve(place.place)
    if not isinstance(controller, Controller):
        raise HapteraError(
            "is no controller", where=place.place, do="name a Controller", code=Code.INVALID_MODULE
        )
    link = socket.socket(fileno=descriptors[0])
    asyncio.run(serve_controller(controller, place.name, link, settings, clock.wall_s))


def _settle(name: str, arguments: dict[str, Any]) -> None:
    """Be bounded and confined, and import what is there now."""
    confine(name, arguments["memory_bytes_max"])
    if (confinement := arguments.get("confinement")) is not None:
        confine_to(msgspec.convert(confinement, Confinement))
    # The zygote's view of directories may be older than the module.
    importlib.invalidate_caches()


def _forget(place: str) -> None:
    """Have a module imported anew that has changed since the zygote imported it."""
    package = place.partition(":")[0].rpartition(".")[0]
    names = [name for name in sys.modules if package and f"{name}.".startswith(f"{package}.")]
    files = [getattr(sys.modules[name], "__file__", None) for name in names]
    if any(file is not None and Path(file).stat().st_mtime >= _IMPORTED_AT_S for file in files):
        for name in names:
            del sys.modules[name]


def _object(settings: str) -> dict[str, Any]:
    """The settings that are desired, if any are."""
    return msgspec.json.decode(settings, type=dict[str, Any]) if settings else {}
