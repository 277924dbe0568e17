"""Another engine that runs jobs of the queue: those that name it."""

from typing import Final

import msgspec

from haptera.kinds.brought import BACKENDS_GROUP, Brought, brought, the_one
from haptera.model.declared.desired_check import nearest
from haptera.model.declared.meaning import Meaning
from haptera.model.declared.schema import Kind, Plain
from haptera.model.errors import HapteraError
from haptera.model.text import User

# Engines that come with haptera, and where they stand; others come with packages.
BUNDLED: Final = {"slurm": "haptera.modules.slurm.jobs:Slurm"}


def engine_named(name: str) -> Brought:
    """A maker of backends of one engine.

    Raises:
        HapteraError: nothing here does, or several packages do.
    """
    if (place := BUNDLED.get(name)) is not None:
        return Brought(BACKENDS_GROUP, name, place, "haptera", "")
    there = brought(BACKENDS_GROUP)
    if name not in there:
        raise HapteraError(f"there is no engine {name!r}", do=nearest(name, [*BUNDLED, *there]))
    return the_one(there[name])


def _check_engine(text: str) -> None:
    engine_named(text)


def _check_folder(text: str) -> None:
    if not text.startswith("/"):
        raise HapteraError(f"{text!r} is not a path that begins with /", do="write it in full")


def _check_user(text: str) -> None:
    try:
        msgspec.convert(text, User)
    except msgspec.ValidationError:
        do = "write one, as haptera-jobs"
        raise HapteraError(f"{text!r} is not the name of a user", do=do) from None


engine = Plain("backend", "engine", str, 16, _check_engine)
# Its configuration, where that is not in the engine's own place; of slurm: its slurm.conf.
conf = Plain("backend", "conf", str, 256, _check_folder, meaning=Meaning.CODE_FILE)
# Where what jobs write is kept, on the machines that run them; without it, it is not kept.
output = Plain("backend", "output", str, 256, _check_folder, meaning=Meaning.HOST_PATH)
# As whom its jobs run; without it, as one without rights, where the parent is root.
user = Plain("backend", "user", str, 32, _check_user, meaning=Meaning.USER)

kind = Kind("backend", (), plain=(engine, conf, output, user), of_cluster=True, count_max=1_000)
