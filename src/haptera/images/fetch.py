"""Artefacts come from the parent: resumed where they broke off, verified while they stream."""

import hashlib
import http.client
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote

from haptera.images.manifest import (
    CHUNK_BYTES,
    DIGEST,
    MANIFEST_BYTES_MAX,
    ImageManifest,
    digest_of,
    verified,
)
from haptera.images.parent import Parent
from haptera.sdk import HapteraError, Refused

# How often one call goes on with an artefact that broke off before it says so.
BREAKS_MAX: Final = 5
# How often one call asks again while others are served before it: ten minutes.
WAITS_MAX: Final = 120
TEXT_BYTES_MAX: Final = 300
# The folder in the cache that has the highest number of each name.
SEEN: Final = "seen"
# What a connection that breaks off looks like.
_BROKEN: Final = (OSError, http.client.HTTPException)


class LostError(HapteraError):
    """The parent is away, or what it sent broke off: later it may be had."""


class BeingBuiltError(LostError):
    """The parent is building the image."""


class NotThereError(Refused):
    """The parent has no such image, or none that this node may have."""


@dataclass(frozen=True, slots=True)
class ArtefactSource:
    """A parent, and the folder in which artefacts from it are kept by digest."""

    parent: Parent
    cache: Path

    def manifest(self, reference: str) -> tuple[bytes, ImageManifest]:
        """The manifest of an image, by name or digest, as it came and as it reads, verified.

        Raises:
            NotThereError: the parent has no such image, or not for this node.
            BeingBuiltError: it is being built.
            LostError: it cannot be had now.
            HapteraError: it is not signed by the cluster's authority, or an earlier one.
        """
        try:
            with self.parent.get(f"/images/{quote(reference, safe='')}", {}) as answer:
                content = answer.read(MANIFEST_BYTES_MAX)
        except _BROKEN as error:
            raise LostError(f"the manifest of {reference}: {self._lost(error)}") from error
        if answer.status != HTTPStatus.OK:
            said = content[:TEXT_BYTES_MAX].decode(errors="replace")
            if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
                raise BeingBuiltError(said)
            raise NotThereError(said or f"the parent answers {answer.status}")
        manifest = verified(content, self.parent.uplink.ca_pem, reference)
        if not reference.startswith(DIGEST):
            self._check_number(manifest)
        return content, manifest

    def _check_number(self, manifest: ImageManifest) -> None:
        """See that no manifest of this name with a higher number has come here, and note it.

        Raises:
            HapteraError: one has.
        """
        place = self.cache / SEEN / quote(manifest.name, safe="")
        seen = _number(place)
        if manifest.number < seen:
            raise HapteraError(
                f"the manifest of {manifest.name} is an earlier one: its number is"
                f" {manifest.number}, and {seen} was here",
                where=f"from {self.parent.uplink}",
                do="see who has put it there; to go back on purpose, build it anew",
            )
        if manifest.number > seen:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft = place.with_name(f".{place.name}")
            draft.write_text(str(manifest.number), encoding="ascii")
            draft.replace(place)

    def artefact(self, manifest: ImageManifest) -> Path:
        """The artefact of an image, all of it, read once more since it was written.

        Raises:
            HapteraError: what came is not what the manifest says, and nothing of it is kept.
            LostError: it broke off too often, and what came is kept, to be gone on with.
        """
        self.cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = self.cache / manifest.digest.removeprefix(DIGEST)
        if place.exists():
            if digest_of(place) == manifest.digest:
                return place
            place.unlink()  # It was whole once: the disk has changed it since.
        self._pull(manifest, place.with_suffix(".part"))
        place.with_suffix(".part").replace(place)
        return place

    def _pull(self, manifest: ImageManifest, part: Path) -> None:
        with part.open("a+b") as file:
            file.seek(0)
            found = hashlib.file_digest(file, "sha256")
            broken: str | None = None
            for _ in range(BREAKS_MAX):
                broken = self._go_on(manifest, file, found)
                if broken is None:
                    break
            if broken is not None:
                raise LostError(f"{manifest.digest} broke off {BREAKS_MAX} times: {broken}")
            size_bytes = file.tell()
        told = DIGEST + found.hexdigest()
        if told != manifest.digest or size_bytes != manifest.size_bytes:
            part.unlink()
            raise HapteraError(
                f"what came is not {manifest.digest}, of {manifest.name}: not mounted",
                where=f"from {self.parent.uplink}",
                do="build the image anew, there or under another name",
            )

    def _go_on(self, manifest: ImageManifest, file: BinaryIO, found: "hashlib._Hash") -> str | None:
        """Ask for what is missing; how that broke off, if it did."""
        have = file.tell()
        if have >= manifest.size_bytes:
            return None
        try:
            with self._in_turn(manifest.digest, have) as answer:
                if not (answer.getheader("Content-Range") or "").startswith(f"bytes {have}-"):
                    return f"the parent answers {answer.status}"
                while file.tell() < manifest.size_bytes and (chunk := answer.read(CHUNK_BYTES)):
                    _write(file, chunk)
                    found.update(chunk)
        except _BROKEN as error:
            return self._lost(error)
        return None if file.tell() >= manifest.size_bytes else "it ended too early"

    def _in_turn(self, digest: str, have: int) -> http.client.HTTPResponse:
        """The answer with all but what is here, which may come after those to others.

        Raises:
            LostError: too many are before this node.
        """
        said = ""
        for _ in range(WAITS_MAX):
            answer = self.parent.get(f"/artefacts/{digest}", {"Range": f"bytes={have}-"})
            if answer.status != HTTPStatus.SERVICE_UNAVAILABLE:
                return answer
            with answer:
                said = answer.read(TEXT_BYTES_MAX).decode(errors="replace")
        raise LostError(f"{self.parent.uplink}: {said}")

    def _lost(self, error: Exception) -> str:
        text = error.strerror if isinstance(error, OSError) else None
        return f"{self.parent.uplink}: {text or str(error) or type(error).__name__}"


def _number(place: Path) -> int:
    """The highest number that came; 0 where none did, or what was noted is damaged."""
    try:
        return int(place.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 0


def _write(file: BinaryIO, chunk: bytes) -> None:
    """Write, where a full disk is not taken for a connection that broke off."""
    try:
        file.write(chunk)
        file.flush()
    except OSError as error:
        raise HapteraError(f"{error.strerror}: {Path(file.name).parent}") from error
