"""What is known of one system between processes: the roots that are mounted, and its last start."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from haptera.images.manifest import DIGEST, ImageManifest
from haptera.keeping import procfs
from haptera.keeping.home import ServiceProcess
from haptera.kinds.system import SystemRun
from haptera.modules.system.mounts import Root

RUN_ID_CHARACTERS: Final = 12
LAST_BYTES: Final = 400
# The file in a root's folder that says that it is ready.
STAGED: Final = "staged.json"

Content = TypeVar("Content", bound=msgspec.Struct)


class Staged(msgspec.Struct, frozen=True):
    """A mounted root: its image, and the names or digests by which that was desired."""

    manifest: ImageManifest
    references: tuple[str, ...]


class SystemStart(msgspec.Struct, frozen=True):
    """The last start: the run's name, its init, the image's digest, and as what it was desired."""

    run: str
    boot: str
    pid: int
    started: int
    image: str
    reference: str

    @property
    def process(self) -> ServiceProcess:
        return ServiceProcess(self.pid, self.started)


class ImageRefusal(msgspec.Struct, frozen=True):
    """An image that was tried here and does not run, and why."""

    reference: str
    attempt: int | None
    why: str


class Ending(msgspec.Struct, frozen=True):
    """Who has begun to end what runs; where that is dead, nobody goes on with it."""

    pid: int
    started: int


@dataclass(frozen=True, slots=True)
class SystemHome:
    """A system's directory."""

    path: Path

    @property
    def output(self) -> Path:
        """What its systems have written to their standard output."""
        return self.path / "output.log"

    def root(self, digest: str) -> Root:
        """Where the root of an image is mounted, if it is."""
        return Root(self.path / "roots" / digest.removeprefix(DIGEST)[:RUN_ID_CHARACTERS])

    def staged(self) -> Iterator[tuple[Root, Staged]]:
        """All roots that are ready."""
        for folder in sorted((self.path / "roots").glob("*")):
            root, said = Root(folder), _read(folder / STAGED, Staged)
            if said is not None and root.mounted:
                yield root, said

    def noted(self) -> Iterator[Staged]:
        """The notes on roots, mounted still or not."""
        for place in (self.path / "roots").glob(f"*/{STAGED}"):
            if (said := _read(place, Staged)) is not None:
                yield said

    def staged_for(self, reference: str) -> tuple[Root, Staged] | None:
        """The root that is ready for an image, as it is desired."""
        ready = ((root, one) for root, one in self.staged() if reference in one.references)
        return next(ready, None)

    def note_staged(self, root: Root, staged: Staged) -> None:
        """Say of a root that is mounted that it is ready."""
        _write(root.folder / STAGED, staged)

    def started(self) -> SystemStart | None:
        """The last start since the machine's boot; None where it was cleared away."""
        said = _read(self.path / "started.json", SystemStart)
        return said if said is not None and said.boot == procfs.boot_id() else None

    def refused(self) -> ImageRefusal | None:
        """The image that was last found not to run here, while nothing else was tried."""
        return _read(self.path / "refused.json", ImageRefusal)

    def note_refused(self, refusal: ImageRefusal) -> None:
        """Say of an image that it does not run here."""
        self.make()
        _write(self.path / "refused.json", refusal)

    def forget_refused(self) -> None:
        """Nothing is held against any image."""
        (self.path / "refused.json").unlink(missing_ok=True)

    def note_started(
        self, run: str, process: ServiceProcess, staged: Staged, reference: str
    ) -> None:
        """Keep who was started, and for what."""
        said = SystemStart(
            run,
            procfs.boot_id(),
            process.pid,
            process.started,
            staged.manifest.digest,
            reference,
        )
        _write(self.path / "started.json", said)

    def forget_started(self) -> None:
        """Nothing is left of the last start."""
        (self.path / "started.json").unlink(missing_ok=True)

    @contextmanager
    def ending(self) -> Iterator[None]:
        """For so long, the end of what runs is meant: no failure, and not all of it either."""
        me = ServiceProcess(os.getpid(), procfs.start_time(os.getpid()) or 0)
        _write(self.path / "ending.json", Ending(me.pid, me.started))
        try:
            yield
        finally:
            (self.path / "ending.json").unlink(missing_ok=True)

    def run(self) -> SystemRun:
        """Whether it runs, which it does until all of it is gone; if not, how that came."""
        started = self.started()
        if started is None:
            return SystemRun.STOPPED
        by = _read(self.path / "ending.json", Ending)
        if started.process.lives or (by is not None and ServiceProcess(by.pid, by.started).lives):
            return SystemRun.RUNNING
        return SystemRun.FAILED

    def last_words(self) -> str:
        """The last line that it wrote, for people."""
        try:
            lines = self.output.read_bytes()[-LAST_BYTES:].decode(errors="replace").splitlines()
        except FileNotFoundError:
            lines = []
        said = [line.strip() for line in lines if line.strip()]
        return f"it ended by itself: {said[-1]}" if said else "it ended by itself"

    def make(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)

    async def drop(self, root: Root) -> None:
        """Unmount a root and forget it.

        Raises:
            HapteraError: it is in use.
        """
        (root.folder / STAGED).unlink(missing_ok=True)
        await root.unmount()
        shutil.rmtree(root.folder, ignore_errors=True)

    async def drop_all(self, spare: tuple[str, ...] = ()) -> None:
        """Unmount all roots but those of these images, by digest."""
        kept = {self.root(digest).folder for digest in spare}
        for folder in sorted((self.path / "roots").glob("*")):
            if folder not in kept:
                await self.drop(Root(folder))


def home_of(run_dir: Path, system: str) -> SystemHome:
    """The directory of this system, which is of a name that was checked."""
    return SystemHome(run_dir.absolute() / "systems" / system)


def _read(path: Path, shape: type[Content]) -> Content | None:
    """What stands in a file; nothing, where a crash has left less than all of it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=shape)
    except (FileNotFoundError, ValueError, RecursionError):
        return None


def _write(path: Path, content: msgspec.Struct) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.write_bytes(msgspec.json.encode(content))
    draft.replace(path)
