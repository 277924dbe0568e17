"""Images on the parent's disk: artefacts by their digests, signed manifests by their names."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from haptera.images.manifest import DIGEST, ImageManifest, digest_of, read
from haptera.sdk import HapteraError, Refused

MB: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ImageStore:
    """The store below `path`; names are those of entities."""

    path: Path

    @property
    def work(self) -> Path:
        """Where builds keep what nobody else should find."""
        return self.path / "work"

    def coming(self, name: str) -> Path:
        """Where what a parent above has of an image is fetched to."""
        return self.path / "coming" / name

    def log(self, name: str) -> Path:
        """What the last build of an image wrote."""
        return self.path / "logs" / f"{name}.log"

    def signed(self, reference: str) -> bytes | None:
        """The signed manifest of an image, by its name or its digest."""
        if not reference.startswith(DIGEST):
            # What systems name is any text, and leads nowhere else.
            found = {"/", "\0"}.isdisjoint(reference)
            return _content(self._manifest(reference)) if found else None
        return next(
            (one for one in map(_content, self._manifests()) if one and _is(one, reference)), None
        )

    def manifest(self, reference: str) -> ImageManifest | None:
        """What is known of an image, by its name or its digest."""
        content = self.signed(reference)
        return None if content is None else read(content)

    def artefact(self, digest: str) -> Path:
        """Where the artefact of a digest is, if it is there."""
        return self.path / "sha256" / digest.removeprefix(DIGEST)

    def inventory(self, reference: str) -> bytes | None:
        """The files of an image as JSON, by its name or its digest."""
        manifest = self.manifest(reference)
        return None if manifest is None else _content(self._inventory(manifest.digest))

    def has(self, manifest: ImageManifest) -> bool:
        """Whether the artefact lies there, as far as its size tells."""
        try:
            return self.artefact(manifest.digest).stat().st_size == manifest.size_bytes
        except FileNotFoundError:
            return False

    def check_room(self, size_bytes: int, quota_bytes: int | None) -> None:
        """See that one more artefact, of this size, may be kept.

        Raises:
            Refused: all artefacts together would take more than the quota.
        """
        if quota_bytes is None:
            return
        used = self._used_bytes
        if used + size_bytes > quota_bytes or used == quota_bytes:
            new = f", and this one is of {size_bytes / MB:.1f} MB" if size_bytes else ""
            raise Refused(
                f"the store is full: its artefacts take {used / MB:.1f} MB of"
                f" {quota_bytes / MB:.1f} MB{new}: `haptera image gc --dry-run` shows what can be"
                " freed; or raise quota_mb in the settings of the module image"
            )

    def left_bytes(self, name: str, quota_bytes: int | None) -> int | None:
        """What an artefact for this name may take at most; None: as much as the disk has.

        What it stands for now may come out again: that takes no more than it does already.
        """
        if quota_bytes is None:
            return None
        before = self.manifest(name)
        return max(quota_bytes - self._used_bytes, before.size_bytes if before else 0)

    def make(self) -> None:
        for folder in ("work", "logs", "sha256", "inventories", "names"):
            (self.path / folder).mkdir(parents=True, exist_ok=True, mode=0o700)

    def number(self, name: str, wall_s: float) -> int:
        """That of the next manifest of a name: it never goes down, nor does it with another store.

        So it is the time, unless the clock was set back meanwhile.
        """
        before = self.manifest(name)
        return max(int(wall_s), 0 if before is None else before.number + 1)

    def keep(self, artefact: Path, signed: bytes, inventory: bytes = b"") -> None:
        """Take an artefact in, and have the name in its manifest stand for it from now on."""
        manifest = read(signed)
        with self._alone():
            before = self.manifest(manifest.name)
            if inventory:
                self._inventory(manifest.digest).write_bytes(inventory)
            artefact.replace(self.artefact(manifest.digest))
            draft = self.work / f"{manifest.name}.json"
            draft.write_bytes(signed)
            draft.replace(self._manifest(manifest.name))
            if before is not None:
                self._drop(before.digest)

    def remove(self, name: str) -> None:
        """Have the name stand for nothing; the artefact goes where no other name is left."""
        if not self._manifest(name).exists():
            return
        with self._alone():
            manifest = self.manifest(name)
            self._manifest(name).unlink(missing_ok=True)
            if manifest is not None:
                self._drop(manifest.digest)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One at a time: what one keeps, another must not find without a name, and drop."""
        with (self.path / "lock").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @property
    def _used_bytes(self) -> int:
        return sum(one.stat().st_size for one in (self.path / "sha256").iterdir())

    def _drop(self, digest: str) -> None:
        if self.signed(digest) is None:
            self.artefact(digest).unlink(missing_ok=True)
            self._inventory(digest).unlink(missing_ok=True)

    def _inventory(self, digest: str) -> Path:
        return self.path / "inventories" / f"{digest.removeprefix(DIGEST)}.json"

    def _manifest(self, name: str) -> Path:
        return self.path / "names" / f"{name}.json"

    def _manifests(self) -> Iterator[Path]:
        folder = self.path / "names"
        names = sorted(os.listdir(folder)) if folder.exists() else ()
        return (folder / name for name in names)


def store_of(run_dir: Path) -> ImageStore:
    """The store of a parent with this run directory."""
    return ImageStore(run_dir / "images")


def manifest_of(artefact: Path, told: ImageManifest) -> ImageManifest:
    """The manifest with the digest and the size of this artefact."""
    return ImageManifest(
        told.name,
        digest_of(artefact),
        artefact.stat().st_size,
        told.architecture,
        told.command,
        told.environment,
        told.folder,
        told.stop_signal,
        told.recipe,
    )


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _is(content: bytes, digest: str) -> bool:
    try:
        return read(content).digest == digest
    except HapteraError:
        return False
