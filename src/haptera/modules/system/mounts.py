"""The root of a system: an artefact that nobody writes to, and over it a tmpfs for what changes."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from haptera.sdk import HapteraError
from haptera.sdk.commands import Program

MOUNTS: Final = Path("/proc/self/mountinfo")
# `attach` may wait for a disk that is elsewhere.
COMMAND_S_MAX: Final = 600.0
# An erofs has this number there, the lowest byte first.
EROFS_AT: Final = 1_024
EROFS: Final = bytes.fromhex("e2e1f5e0")


@dataclass(frozen=True, slots=True)
class Root:
    """The mounts of one root, below a folder of its own."""

    folder: Path

    @property
    def path(self) -> Path:
        """The root itself."""
        return self.folder / "root"

    @property
    def mounted(self) -> bool:
        return os.path.ismount(self.path)

    async def mount(self, artefact: Path, scratch_mb: int) -> None:
        """Mount it, a squashfs or an erofs; what goes wrong leaves nothing mounted.

        Raises:
            HapteraError: it cannot be mounted.
        """
        lower, scratch = self.folder / "lower", self.folder / "scratch"
        for one in (lower, scratch, self.path):
            one.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            await _mount_artefact(artefact, lower)
            size = f"nodev,size={scratch_mb}m"
            await run("mount", "-t", "tmpfs", "-o", size, "tmpfs", str(scratch))
            (scratch / "upper").mkdir(mode=0o755)
            (scratch / "work").mkdir(mode=0o755)
            # An overlay opens devices of its layers, whatever these were mounted with.
            layers = f"nodev,lowerdir={lower},upperdir={scratch}/upper,workdir={scratch}/work"
            await run("mount", "-t", "overlay", "-o", layers, "overlay", str(self.path))
        except HapteraError:
            await self.unmount()
            raise

    async def mount_alone(self, artefact: Path) -> None:
        """Mount it with nothing over it that could be written.

        Raises:
            HapteraError: it cannot be mounted.
        """
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        await _mount_artefact(artefact, self.path)

    async def attach(self, attach: str, detach: str | None, digest: str) -> Path:
        """Have an artefact ready that is not fetched; where it is, as the command says.

        It is detached with the unmounting. In both commands, `{digest}` is the artefact's, in hex,
        and in the second one `{place}` what the first one has printed.

        Raises:
            HapteraError: it fails, or names no place.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = await run(*_words(attach, digest=digest))
        place = place.strip().rpartition("\n")[2]
        if detach is not None:
            words = _words(detach, digest=digest, place=place)
            self._detaching.write_bytes(msgspec.json.encode(words))
        if not os.path.isabs(place):
            raise HapteraError(f"the command attach printed no place of an artefact: {place!r}")
        return Path(place)

    async def unmount(self) -> None:
        """Unmount all of it, and detach what was attached for it.

        Raises:
            HapteraError: something keeps it busy.
        """
        while found := mounted_below(self.folder):
            await run("umount", str(found[-1]))
        if self._detaching.exists():
            await run(*msgspec.json.decode(self._detaching.read_bytes(), type=list[str]))
            self._detaching.unlink()

    @property
    def _detaching(self) -> Path:
        return self.folder / "detach.json"


async def _mount_artefact(artefact: Path, place: Path) -> None:
    await run("mount", *_options(artefact), str(artefact), str(place))


def _options(artefact: Path) -> tuple[str, ...]:
    """How an artefact is mounted; what is no erofs is taken for a squashfs."""
    with artefact.open("rb") as file:
        file.seek(EROFS_AT)
        sort = "erofs" if file.read(len(EROFS)) == EROFS else "squashfs"
    loop = () if artefact.is_block_device() else ("loop",)
    return "-t", sort, "-o", ",".join((*loop, "ro", "nodev"))


def _words(command: str, **given: str) -> list[str]:
    """The words of a command, in which names in braces stand for what is given."""
    words = shlex.split(command)
    for name, value in given.items():
        words = [one.replace(f"{{{name}}}", value) for one in words]
    return words


def mounted_below(folder: Path) -> list[Path]:
    """What is mounted below a folder, what was mounted last at the end."""
    lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    places = (Path(line.split(" ")[4].replace("\\040", " ")) for line in lines)
    return [one for one in places if one.is_relative_to(folder.absolute())]


async def run(*words: str) -> str:
    """What a command prints.

    Raises:
        HapteraError: it failed, in its own words, or does not end.
    """
    return (await Program(words).done(COMMAND_S_MAX)).out
