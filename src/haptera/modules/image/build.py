"""From a recipe or a source to an artefact: buildah makes the root, mksquashfs packs it."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from subprocess import PIPE
from typing import Final, TypeVar, assert_never

from haptera.images.manifest import ImageManifest
from haptera.kinds.inventory import Inventory
from haptera.modules.image.inventory import Contents, contents_of
from haptera.modules.image.room import StoreRoom
from haptera.modules.image.sources import (
    INIT,
    SourceSort,
    bare,
    check_init,
    check_owned,
    pour,
    source_of,
    unpacked,
)
from haptera.modules.image.store import manifest_of
from haptera.modules.regular import is_regular, open_regular
from haptera.sdk import Foreign, HapteraError, Refused, read_foreign
from haptera.sdk.commands import Program, ProgramResult, RunningProgram, tied

RECIPE: Final = "Dockerfile"
# How OCI calls this machine, for a root without any program.
MACHINE: Final = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
TOOLS: Final = {"buildah": "buildah", "mksquashfs": "squashfs-tools"}
# What these write is the artefact; buildah's layers are larger, and only the disk bounds them.
PACKERS: Final = ("mksquashfs", "mkfs.erofs")
ROOM_LOOKED_AT_EVERY_S: Final = 0.2
# Of what buildah says of an image.
ANSWER_BYTES_MAX: Final = 16 << 20
# So many sources are read at once.
IMPORTS_AT_ONCE: Final = 8
# Of what a command wrote that failed: so much fits the words that `why` tells.
LAST_BYTES: Final = 360
# 1980-01-01, for a recipe that says `ARG SOURCE_DATE_EPOCH`: what tools then stamp into what they
# make, so that it is the same on another day. Archives of some formats know no earlier time.
# See reproducible-builds.org/specs/source-date-epoch.
EPOCH: Final = "SOURCE_DATE_EPOCH=315532800"
# To be packed soon counts for more than the last few percent of size.
PACKING: Final = (
    *("-quiet", "-no-progress", "-mkfs-time", "0"),
    *("-comp", "zstd", "-Xcompression-level", "3"),
)

# Compressed as squashfs is not: any part is read without its surroundings.
EROFS: Final = ("--quiet", "-zlz4hc", "-U", "00000000-0000-0000-0000-000000000000")
# When it is said to be made: no file is made to look older by a time that is this late.
EROFS_EPOCH: Final = "4102444800"

# An imported root may be in anybody's folder, and a tar says nothing of it.
ROOT: Final = (
    *("-root-mode", "755", "-root-uid", "0"),
    *("-root-gid", "0", "-root-time", "0"),
)

_imports: Final = ThreadPoolExecutor(IMPORTS_AT_ONCE, "image-import")
Outcome = TypeVar("Outcome")


class ImageFormat(StrEnum):
    """Which file system an artefact is."""

    SQUASHFS = "squashfs"
    EROFS = "erofs"


@dataclass(frozen=True, slots=True)
class Build:
    """One build: its image, its recipe or source, and the place of its log."""

    name: str
    made_of: str
    is_recipe: bool
    work: Path
    log: Path
    room: StoreRoom
    form: ImageFormat = ImageFormat.SQUASHFS

    async def run(self) -> tuple[Path, ImageManifest, Inventory]:
        """The artefact, which is the caller's to move or delete, and what is to be said of it.

        Raises:
            Refused: there is no recipe, a tool is missing, or fails; in its last words.
        """
        self._check()
        # What an earlier build left that was killed.
        await asyncio.to_thread(shutil.rmtree, self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self._configuration.write_text(self._places(), encoding="utf-8")
        self.log.write_bytes(b"")
        begun_s = int(self.log.stat().st_mtime)  # what is copied may lose its fractions
        artefact = self.work / "root.squashfs"
        make = self._built if self.is_recipe else self._imported
        told = await make(artefact, begun_s)
        contents = await asyncio.to_thread(_contents, artefact)
        told = told or bare(self.name, self.made_of, contents, MACHINE)
        if not self.is_recipe:
            check_init(told, contents)
        if self._erofs.exists():
            artefact = self._erofs
        manifest = await asyncio.to_thread(manifest_of, artefact, told)
        return artefact, manifest, contents.inventory(manifest.digest)

    async def _built(self, artefact: Path, begun_s: int) -> ImageManifest:
        tag = f"localhost/{self.name.lower()}"
        options = ("--isolation", "chroot", "--format", "docker", "--build-arg", EPOCH)
        await self._do(*self._buildah("build", *options, "--tag", tag), self.made_of)
        return await self._packed(tag, artefact, begun_s)

    async def _imported(self, artefact: Path, begun_s: int) -> ImageManifest | None:
        """What the source says of itself, if it does."""
        source = await _in_import(source_of, self.made_of)
        match source.sort:
            case SourceSort.CONTAINER:
                pulled = await self._answer("pull", "--quiet", source.place)
                return await self._packed(pulled.decode().strip(), artefact, begun_s)
            case SourceSort.FOLDER:
                # Without files that cannot be read it would be another root.
                words = (
                    "mksquashfs",
                    source.place,
                    str(artefact),
                    *ROOT,
                    *PACKING,
                    "-exit-on-error",
                )
                await self._do(*words)
            case SourceSort.SQUASHFS:
                with open_regular(Path(source.place)) as file:
                    await _in_import(self.room.copy, file, artefact)
            case SourceSort.TAR:
                await self._packed_tar(source.place, artefact)
            case _:
                assert_never(source.sort)
        return None

    async def _packed_tar(self, place: str, artefact: Path) -> None:
        """Unpacked while it is packed anew, so that its size is of no account."""
        words = ("mksquashfs", "-", str(artefact), *ROOT, *PACKING, "-tar")
        with open_regular(Path(place)) as file:
            tar = unpacked(file)
            reading, writing = os.pipe()
            poured, packed = await asyncio.gather(
                _in_import(pour, tar, writing, place),
                self._do(*words, reads=reading),
                return_exceptions=True,
            )
        for outcome in (poured, packed):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _packed(self, image: str, artefact: Path, begun_s: int) -> ImageManifest:
        """An image of buildah's as an artefact, and what it says of itself."""
        # buildah version 1.28.2 (image-spec 1.1.0-dev, runtime-spec 1.0.2-dev)
        version = (await self._answer("--version")).decode(errors="replace").split()[2:3]
        inspected = await self._answer("inspect", "--type", "image", image)
        told = described(
            self.name, self.made_of, read_foreign(" ".join(["buildah", *version]), inspected)
        )
        container = (await self._answer("from", image)).decode().strip()
        # Mounted, and not written out: in a user namespace buildah writes all files as root's.
        root = Path((await self._answer("mount", container)).decode().rstrip("\n"))
        try:
            await asyncio.to_thread(settle, root, begun_s)
            # Of an erofs there is no list of files without it.
            await self._do("mksquashfs", str(root), str(artefact), *PACKING)
            if self.form is ImageFormat.EROFS:
                await self._do("mkfs.erofs", *EROFS, str(self._erofs), str(root))
        finally:
            await self._answer("umount", container)
        return told

    def _check(self) -> None:
        recipe = Path(self.made_of) / RECIPE
        if self.is_recipe and not is_regular(recipe):
            raise Refused(f"there is no {RECIPE} in {self.made_of}: name the folder that has one")
        if self.is_recipe:
            check_owned(recipe)
        tools = {**TOOLS, "mkfs.erofs": "erofs-utils"} if self.form is ImageFormat.EROFS else TOOLS
        missing = [package for tool, package in tools.items() if shutil.which(tool) is None]
        if missing:
            raise Refused(f"missing here: sudo apt install {' '.join(missing)}")

    @property
    def _erofs(self) -> Path:
        return self.work / "root.erofs"

    @property
    def _configuration(self) -> Path:
        return self.work / "containers.conf"

    def _places(self) -> str:
        """What keeps buildah's locks here: containers.conf(5) has them in /run and /etc."""
        locks, networks = (json.dumps(str(self.work / one)) for one in ("locks", "networks"))
        return f"[engine]\ntmp_dir={locks}\n[network]\nnetwork_config_dir={networks}\n"

    def _buildah(self, *words: str) -> tuple[str, ...]:
        places = ("--root", str(self.work / "storage"), "--runroot", str(self.work / "run"))
        return "buildah", *places, *words

    async def _answer(self, *words: str) -> bytes:
        """What buildah prints."""
        return await self._do(*self._buildah(*words), prints=PIPE)

    async def _do(self, *words: str, prints: int | None = None, reads: int | None = None) -> bytes:
        """Carry out a command; what it prints goes to the log, unless it is to be had."""
        epoch = {"SOURCE_DATE_EPOCH": EROFS_EPOCH} if words[0] == "mkfs.erofs" else {}
        most_bytes = self.room.artefact_bytes if words[0] in PACKERS else None
        with self.log.open("ab") as log, _closed_after(reads):
            program = Program(
                words,
                {**os.environ, "CONTAINERS_CONF": str(self._configuration), **epoch},
                given=reads,
                output=log.fileno() if prints is None else prints,
                errors=log.fileno(),
                output_bytes_max=ANSWER_BYTES_MAX,
                prepare=lambda: tied(file_bytes_max=most_bytes),
            )
            running = await program.start()
        ended = await self._watched(running)
        if ended.status == -signal.SIGXFSZ and most_bytes is not None:
            self.room.check(most_bytes + 1)
        if ended.status != 0:
            raise Refused(self._how_it_failed(words, ended.status))
        return ended.output

    async def _watched(self, running: RunningProgram) -> ProgramResult:
        """Its result; it is killed where the disk becomes full."""
        ending = asyncio.ensure_future(running.ends(None))  # The step bounds its time.
        try:
            while not (await asyncio.wait([ending], timeout=ROOM_LOOKED_AT_EVERY_S))[0]:
                self.room.check_disk()
            return ending.result()
        finally:
            ending.cancel()
            await asyncio.wait([ending])

    def _how_it_failed(self, words: Sequence[str], status: int) -> str:
        with self.log.open("rb") as log:
            begin = max(0, log.seek(0, os.SEEK_END) - LAST_BYTES)
            log.seek(begin)
            lines = log.read().decode(errors="replace").splitlines()[1 if begin else 0 :]
        return f"{words[0]} ended with status {status}: {' / '.join(filter(None, lines))}"


def described(name: str, made_of: str, inspected: Foreign) -> ImageManifest:
    """What buildah says of an image, as OCI names it.

    Raises:
        ForeignError: it says so in a shape that is not known.
    """
    oci = inspected["OCIv1"].need()
    config = oci["config"]
    return ImageManifest(
        name,
        "",
        0,
        oci["architecture"].need().text() or "",
        (*config["Entrypoint"].words(), *config["Cmd"].words()) or (INIT,),
        config["Env"].words(),
        config["WorkingDir"].text() or "/",
        config["StopSignal"].text() or "SIGTERM",
        made_of,
    )


async def _in_import(do: Callable[..., Outcome], *arguments: object) -> Outcome:
    """In a thread for what is read from elsewhere: a file system that hangs keeps no other work."""
    return await asyncio.get_running_loop().run_in_executor(_imports, do, *arguments)


@contextlib.contextmanager
def _closed_after(descriptor: int | None) -> Iterator[None]:
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _contents(artefact: Path) -> Contents:
    try:
        return contents_of(artefact)
    except HapteraError as error:
        raise Refused(str(error)) from error


def settle(root: Path, begun_s: int) -> None:
    """Give no time to what the build itself made, so that doing it again makes the same bytes.

    What is older keeps its time: programs go by it (Python, to see whether to compile anew).
    """
    root.chmod(0o755)
    for folder, folders, files in os.walk(root, topdown=False):
        for place in (os.path.join(folder, name) for name in (*files, *folders)):
            if os.lstat(place).st_mtime >= begun_s:
                os.utime(place, (0, 0), follow_symlinks=False)
    os.utime(root, (0, 0))
