"""What an image is imported from, by how it is written, and what is said of a bare root."""

import os
import re
import shutil
import zlib
from collections.abc import Callable, Mapping
from enum import StrEnum
from io import BufferedIOBase
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from haptera.images.manifest import CHUNK_BYTES, ImageManifest, command_places
from haptera.kinds.image import LOCAL, REMOTE
from haptera.kinds.inventory import FileSort
from haptera.modules.image.inventory import Contents
from haptera.modules.regular import open_regular
from haptera.sdk import HapteraError, Refused
from haptera.sdk.owned_files import owned

_TRANSPORT: Final = re.compile(rf"(?P<transport>{REMOTE}|{'|'.join(LOCAL)}):(?P<rest>.+)")
_SQUASHFS: Final = b"hsqs"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
INIT: Final = "/sbin/init"


class SourceSort(StrEnum):
    CONTAINER = "container image"
    FOLDER = "folder"
    SQUASHFS = "squashfs"
    TAR = "tar"


class ImageSource(NamedTuple):
    """A source: for buildah as it was written, else the path on this machine."""

    sort: SourceSort
    place: str


def source_of(text: str) -> ImageSource:
    """What a source is.

    Raises:
        Refused: nothing of the sort is there, or may be read; or others may change it.
    """
    match = _TRANSPORT.fullmatch(text)
    if match and match["transport"] == REMOTE:
        return ImageSource(SourceSort.CONTAINER, text)
    place = Path(match["rest"].partition(":")[0] if match else text)
    if not place.is_absolute():
        raise Refused(f"{place} is no whole path: begin with /, or with docker://")
    head = _head(place)
    check_owned(place)
    if match:
        _check_below(place)
        return ImageSource(SourceSort.CONTAINER, text)
    if head is None:
        return ImageSource(SourceSort.FOLDER, text)
    is_squashfs = head.startswith(_SQUASHFS)
    return ImageSource(SourceSort.SQUASHFS if is_squashfs else SourceSort.TAR, text)


def check_owned(place: Path) -> None:
    """See that nobody but root, and who runs this, can put something else there.

    What an image is made of runs as root on nodes.

    Raises:
        Refused: others may.
    """
    try:
        owned(str(place))
    except HapteraError as error:
        raise Refused(str(error)) from None


def unpacked(packed: BinaryIO) -> BinaryIO | BufferedIOBase:
    """The tar itself, unpacked while it is read where it is compressed.

    Raises:
        Refused: it is compressed in a way that is not known here.
    """
    # Not above: a minOS lacks them, and its agent loads this file with the module.
    import bz2
    import gzip
    import lzma

    compressed: Mapping[bytes, Callable[[BinaryIO], BufferedIOBase]] = {
        b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
        b"BZh": bz2.BZ2File,
        b"\xfd7zXZ": lzma.LZMAFile,
    }
    head = packed.read(8)
    packed.seek(0)
    if head.startswith(_ZSTD):
        raise Refused(f"{packed.name} is compressed with zstd: unpack it first, by unzstd")
    opened = (one for magic, one in compressed.items() if head.startswith(magic))
    return next((one(packed) for one in opened), packed)


def pour(tar: BinaryIO | BufferedIOBase, pipe: int, place: str) -> None:
    """Write a tar into a pipe, whole, or until nobody reads any more.

    Raises:
        Refused: it is damaged.
    """
    import lzma

    try:
        with os.fdopen(pipe, "wb") as out:
            shutil.copyfileobj(tar, out, CHUNK_BYTES)
    except BrokenPipeError:
        pass  # who read it says why
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise Refused(f"{place} cannot be unpacked: {error}") from error


def bare(name: str, source: str, contents: Contents, machine: str) -> ImageManifest:
    """What is said of a root that says nothing of itself: /sbin/init is its init."""
    init = contents.resolved(INIT)
    # See systemd(1), Signals: it goes down by this one when it is in a container.
    is_systemd = init is not None and init.path.endswith("/systemd")
    stop = "SIGRTMIN+3" if is_systemd else "SIGTERM"
    common = contents.machines.most_common(1)
    architecture = common[0][0] if common else machine
    return ImageManifest(name, "", 0, architecture, (INIT,), (), "/", stop, source)


def check_init(manifest: ImageManifest, contents: Contents) -> None:
    """See that what is to be run is in the image.

    Raises:
        Refused: it is not.
    """
    for place in command_places(manifest):
        found = contents.resolved(place)
        if found is not None and found.sort is FileSort.FILE and found.mode & 0o111:
            return
    raise Refused(
        f"{manifest.recipe} has no {manifest.command[0]} that can be run: import a root with an"
        " init, a file of `docker save` as docker-archive:FILE, or build it FROM this with a CMD"
    )


def _check_below(layout: Path) -> None:
    """See that a tool opens regular files only in the folder of a container image, if it is one."""
    for folder, _, names in os.walk(layout):
        for name in names:
            _head(Path(folder, name))


def _head(place: Path) -> bytes | None:
    """How a file begins; None of a folder."""
    try:
        if place.is_dir():
            return None
        with open_regular(place) as file:
            return file.read(len(_SQUASHFS))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        do = "name what all users of the parent's machine can read, or docker://, oci: or"
        raise Refused(f"{place}: {reason}: {do} docker-archive:") from None
