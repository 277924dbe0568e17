"""The root of a system: a squashfs that nobody writes to, and over it a tmpfs for what changes."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from haptera.sdk import HapteraError

MOUNTS: Final = Path("/proc/self/mountinfo")
TEXT_BYTES_MAX: Final = 300


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
        """Mount it; what goes wrong leaves nothing mounted.

        Raises:
            HapteraError: it cannot be mounted.
        """
        lower, scratch = self.folder / "lower", self.folder / "scratch"
        for one in (lower, scratch, self.path):
            one.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            await run("mount", "-t", "squashfs", "-o", "loop,ro,nodev", str(artefact), str(lower))
            await run("mount", "-t", "tmpfs", "-o", f"size={scratch_mb}m", "tmpfs", str(scratch))
            (scratch / "upper").mkdir(mode=0o755)
            (scratch / "work").mkdir(mode=0o755)
            layers = f"lowerdir={lower},upperdir={scratch}/upper,workdir={scratch}/work"
            await run("mount", "-t", "overlay", "-o", layers, "overlay", str(self.path))
        except HapteraError:
            await self.unmount()
            raise

    async def unmount(self) -> None:
        """Unmount all of it.

        Raises:
            HapteraError: something keeps it busy.
        """
        while found := mounted_below(self.folder):
            await run("umount", str(found[-1]))


def mounted_below(folder: Path) -> list[Path]:
    """What is mounted below a folder, what was mounted last at the end."""
    lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    places = (Path(line.split(" ")[4].replace("\\040", " ")) for line in lines)
    return [one for one in places if one.is_relative_to(folder.absolute())]


async def run(*words: str) -> str:
    """What a command prints.

    Raises:
        HapteraError: it failed; in its own words.
    """
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, wrong = await process.communicate()
    if process.returncode != 0:
        said = wrong[-TEXT_BYTES_MAX:].decode(errors="replace").strip()
        raise HapteraError(f"{words[0]}: {said or f'status {process.returncode}'}")
    return printed.decode(errors="replace")
