"""What an image is imported from, by how it is written, and what is said of a bare root."""

import re
import shutil
import zlib
from collections.abc import Callable, Mapping
from enum import StrEnum
from io import BufferedIOBase
from pathlib import Path
from typing import Final, NamedTuple

from haptera.kinds.image import LOCAL, REMOTE
from haptera.kinds.inventory import FileSort
from haptera.modules.image.inventory import Contents
from haptera.modules.image.manifest import ImageManifest, command_places
from haptera.sdk import Refused

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
        Refused: nothing of the sort is there, or may be read.
    """
    if match := _TRANSPORT.fullmatch(text):
        if match["transport"] == REMOTE:
            return ImageSource(SourceSort.CONTAINER, text)
        _check_there(Path(match["rest"].partition(":")[0]))
        return ImageSource(SourceSort.CONTAINER, text)
    place = Path(text)
    _check_there(place)
    if place.is_dir():
        return ImageSource(SourceSort.FOLDER, text)
    with place.open("rb") as file:
        is_squashfs = file.read(len(_SQUASHFS)) == _SQUASHFS
    return ImageSource(SourceSort.SQUASHFS if is_squashfs else SourceSort.TAR, text)


def plain_tar(place: Path, work: Path) -> Path:
    """The tar itself, where it is compressed, unpacked into `work`.

    Raises:
        Refused: it is compressed in a way that is not known here.
    """
    # Not above: a minOS lacks them, and its agent loads this file with the module.
    import bz2
    import gzip
    import lzma

    compressed: Mapping[bytes, Callable[[Path], BufferedIOBase]] = {
        b"\x1f\x8b": gzip.GzipFile,
        b"BZh": bz2.BZ2File,
        b"\xfd7zXZ": lzma.LZMAFile,
    }
    with place.open("rb") as file:
        head = file.read(8)
    if head.startswith(_ZSTD):
        raise Refused(f"{place} is compressed with zstd: unpack it first, by unzstd")
    for magic, opened in compressed.items():
        if head.startswith(magic):
            unpacked = work / "root.tar"
            try:
                with opened(place) as packed, unpacked.open("wb") as out:
                    shutil.copyfileobj(packed, out, 1 << 20)
            except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
                raise Refused(f"{place} cannot be unpacked: {error}") from error
            return unpacked
    return place


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


def _check_there(place: Path) -> None:
    if not place.is_absolute():
        raise Refused(f"{place} is no whole path: begin with /, or with docker://")
    try:
        place.stat()
        if place.is_file():
            place.open("rb").close()
    except OSError as error:
        do = "name what all users of the parent's machine can read, or docker://, oci: or"
        raise Refused(f"{place}: {error.strerror}: {do} docker-archive:") from None
