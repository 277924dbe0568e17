"""What modules, services and consoles have written on this side, for people."""

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from haptera.daemon.queue.job_home import output_of
from haptera.keeping.home import home_of
from haptera.model.entity import EntityId
from haptera.model.errors import Code, HapteraError
from haptera.modules.console import record_of
from haptera.modules.image.store import store_of
from haptera.modules.system.home import home_of as system_home
from haptera.runtime.identity.private import open_unlinked
from haptera.runtime.network.peer_messages import Answer, LogAsked, LogPlace, LogTold, Unable
from haptera.runtime.processes.process import log_of


@dataclass(frozen=True, slots=True)
class Logs:
    """The logs below `directory`, of the modules and the entities that are known here.

    Names are looked up in these; none that comes from elsewhere becomes a path. Consoles are
    recorded in the folders `consoles`, one for each module that does that.
    """

    directory: Path
    modules: Collection[str]
    consoles: Collection[Path] = ()

    @property
    def log_dir(self) -> Path:
        return self.directory / "log"

    def answer(self, asked: LogAsked, known: Iterable[EntityId]) -> Answer:
        """What was written, or why there is nothing; `known` are this side's entities."""
        try:
            with open_unlinked(self._place(asked.entity, known)) as file:
                return part_of(file, os.fstat(file.fileno()).st_ino, asked)
        except FileNotFoundError:
            if asked.entity.kind == "node":
                how = "`record_consoles: true` in the settings of its power module begins one"
                return Unable(f"{asked.entity} has no record of its console yet: {how}")
            return Unable(f"{asked.entity} has no log yet")
        except (HapteraError, OSError) as error:
            return Unable(str(error))

    def _place(self, entity: EntityId, known: Iterable[EntityId]) -> Path:
        if entity.kind == "module":
            name = next((one for one in self.modules if one == entity.name), None)
            if name is None:
                raise HapteraError(f"no module {entity.name!r} runs here", code=Code.NOT_FOUND)
            return log_of(self.log_dir, name)
        if entity.kind == "job":
            return output_of(self.directory, entity.name)
        found = next((one for one in known if one == entity), None)
        match found:
            case EntityId("service", name, _):
                return home_of(self.directory, name).output
            case EntityId("system", name, _):
                return system_home(self.directory, name).output
            case EntityId("image", name, _):
                return store_of(self.directory).log(name)
            case EntityId("node", name, _) if self.consoles:
                # Its platform may have been another.
                return max((record_of(one, name) for one in self.consoles), key=_written_ns)
            case _:
                raise HapteraError("only modules, services, systems, images and jobs have a log")


def _written_ns(file: Path) -> int:
    try:
        return file.lstat().st_mtime_ns
    except FileNotFoundError:
        return 0


def part_of(file: BinaryIO, inode: int, asked: LogAsked) -> LogTold:
    """What follows the place asked for; where that is not in this file, the end of the file."""
    size = file.seek(0, os.SEEK_END)
    after = asked.after
    known = after is not None and after.file == inode and after.offset <= size
    begin = after.offset if after is not None and known else max(0, size - asked.size_bytes)
    file.seek(begin)
    return LogTold(file.read(asked.size_bytes), LogPlace(inode, begin))
