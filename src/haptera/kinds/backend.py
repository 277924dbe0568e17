"""Another engine that runs jobs of the queue: those that name it."""

from enum import StrEnum

from haptera.model.declared.desired_check import nearest
from haptera.model.declared.meaning import Meaning
from haptera.model.declared.schema import Kind, Plain
from haptera.model.errors import HapteraError


class BackendEngine(StrEnum):
    SLURM = "slurm"


def _check_engine(text: str) -> None:
    if text not in list(BackendEngine):
        raise HapteraError(f"there is no engine {text!r}", do=nearest(text, list(BackendEngine)))


def _check_folder(text: str) -> None:
    if not text.startswith("/"):
        raise HapteraError(f"{text!r} is not a path that begins with /", do="write it in full")


engine = Plain("backend", "engine", str, 16, _check_engine)
# Of slurm: its slurm.conf, where that is not in Slurm's own place.
conf = Plain("backend", "conf", str, 256, _check_folder, meaning=Meaning.CODE_FILE)
# Where what jobs write is kept, on the machines that run them; without it, it is not kept.
output = Plain("backend", "output", str, 256, _check_folder, meaning=Meaning.HOST_PATH)

kind = Kind("backend", (), plain=(engine, conf, output), of_cluster=True)
