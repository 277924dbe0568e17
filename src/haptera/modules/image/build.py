"""From a recipe to an artefact: buildah carries out the Dockerfile, mksquashfs packs the root."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from haptera.kinds.inventory import Inventory
from haptera.modules.image.inventory import contents_of
from haptera.modules.image.manifest import ImageManifest
from haptera.modules.image.store import manifest_of
from haptera.modules.image.unbound import unbound
from haptera.sdk import Refused

RECIPE: Final = "Dockerfile"
TOOLS: Final = {"buildah": "buildah", "mksquashfs": "squashfs-tools"}
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


class _Config(msgspec.Struct, frozen=True, rename={"folder": "WorkingDir"}):
    """What the recipe says of how the image runs, as OCI names it."""

    Entrypoint: tuple[str, ...] | None = None
    Cmd: tuple[str, ...] | None = None
    Env: tuple[str, ...] | None = None
    folder: str = ""
    StopSignal: str = ""


class _Oci(msgspec.Struct, frozen=True):
    architecture: str
    config: _Config


class _Inspected(msgspec.Struct, frozen=True):
    OCIv1: _Oci


@dataclass(frozen=True, slots=True)
class Build:
    """One build: of which image, in which folder, and where it writes what it does."""

    name: str
    recipe: Path
    work: Path
    log: Path

    async def run(self) -> tuple[Path, ImageManifest, Inventory]:
        """The artefact, which is the caller's to move or delete, and what is to be said of it.

        Raises:
            Refused: there is no recipe, a tool is missing, or fails; in its last words.
        """
        self._check()
        # What an earlier build left that was killed.
        await asyncio.to_thread(shutil.rmtree, self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.log.write_bytes(b"")
        begun_s = int(self.log.stat().st_mtime)  # what is copied may lose its fractions
        artefact, tag = self.work / "root.squashfs", f"localhost/{self.name.lower()}"
        options = ("--isolation", "chroot", "--format", "docker", "--build-arg", EPOCH)
        await self._do(*self._buildah("build", *options, "--tag", tag), str(self.recipe))
        inspected = await self._answer("inspect", "--type", "image", tag)
        told = msgspec.json.decode(inspected, type=_Inspected)
        container = (await self._answer("from", tag)).decode().strip()
        # Mounted, and not written out: in a user namespace buildah writes all files as root's.
        root = Path((await self._answer("mount", container)).decode().rstrip("\n"))
        try:
            await asyncio.to_thread(settle, root, begun_s)
            await self._do("mksquashfs", str(root), str(artefact), *PACKING)
        finally:
            await self._answer("umount", container)
        manifest = await asyncio.to_thread(manifest_of, artefact, self._told(told.OCIv1))
        contents = await asyncio.to_thread(contents_of, artefact)
        return artefact, manifest, contents.inventory(manifest.digest)

    def _check(self) -> None:
        if not (self.recipe / RECIPE).is_file():
            raise Refused(f"there is no {RECIPE} in {self.recipe}: name the folder that has one")
        missing = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
        if missing:
            raise Refused(f"missing here: sudo apt install {' '.join(missing)}")

    def _buildah(self, *words: str) -> tuple[str, ...]:
        places = ("--root", str(self.work / "storage"), "--runroot", str(self.work / "run"))
        return "buildah", *places, *words

    def _told(self, oci: _Oci) -> ImageManifest:
        config = oci.config
        return ImageManifest(
            self.name,
            "",
            0,
            oci.architecture,
            (*(config.Entrypoint or ()), *(config.Cmd or ())) or ("/sbin/init",),
            config.Env or (),
            config.folder or "/",
            config.StopSignal or "SIGTERM",
            str(self.recipe),
        )

    async def _answer(self, *words: str) -> bytes:
        """What buildah prints."""
        return await self._do(*self._buildah(*words), prints=asyncio.subprocess.PIPE)

    async def _do(self, *words: str, prints: int | None = None) -> bytes:
        """Carry out a command; what it prints goes to the log, unless it is to be had."""
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log if prints is None else prints,
                stderr=log,
                preexec_fn=unbound,
            )
            try:
                printed, _ = await process.communicate()
            except asyncio.CancelledError:
                process.kill()
                raise
        if process.returncode != 0:
            raise Refused(self._how_it_failed(words, process.returncode or 0))
        return printed or b""

    def _how_it_failed(self, words: Sequence[str], status: int) -> str:
        with self.log.open("rb") as log:
            begin = max(0, log.seek(0, os.SEEK_END) - LAST_BYTES)
            log.seek(begin)
            lines = log.read().decode(errors="replace").splitlines()[1 if begin else 0 :]
        return f"{words[0]} ended with status {status}: {' / '.join(filter(None, lines))}"


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
