"""What is in an image: each file by its content, mode and owner, and the installed packages."""

from enum import StrEnum

import msgspec


class FileSort(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    CHARACTER = "character device"
    BLOCK = "block device"
    FIFO = "fifo"
    SOCKET = "socket"


class ImageFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """One path of an image.

    `content` is the SHA-256 of a file, the target of a symbolic link, the numbers of a device.
    """

    path: str
    sort: FileSort
    mode: int
    uid: int
    gid: int
    size_bytes: int = 0
    content: str | None = None


class Inventory(msgspec.Struct, frozen=True):
    """All files of the artefact of a digest, and the versions of its Debian packages, if any."""

    digest: str
    files: list[ImageFile]
    packages: dict[str, str]
