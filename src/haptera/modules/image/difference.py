"""In what two images differ: packages by version, files by content, mode, owner and size."""

from enum import StrEnum

import msgspec

from haptera.kinds.inventory import ImageFile, Inventory


class Aspect(StrEnum):
    """What of a path differs."""

    SORT = "sort"
    CONTENT = "content"
    MODE = "mode"
    OWNER = "owner"


class PackageChange(msgspec.Struct, frozen=True):
    """One package: its version before and after, None where it is not installed."""

    name: str
    before: str | None
    after: str | None


class FileChange(msgspec.Struct, frozen=True):
    """One path that both have, and what of it differs."""

    before: ImageFile
    after: ImageFile
    aspects: tuple[Aspect, ...]


class ImageDifference(msgspec.Struct, frozen=True):
    """All in which one image differs from another; each list is sorted by path or name."""

    packages: list[PackageChange]
    added: list[ImageFile]
    removed: list[ImageFile]
    changed: list[FileChange]

    @property
    def size_bytes(self) -> int:
        """By how much the files grew together; a negative number: they shrank."""
        grew = sum(one.size_bytes for one in self.added)
        shrank = sum(one.size_bytes for one in self.removed)
        inside = sum(one.after.size_bytes - one.before.size_bytes for one in self.changed)
        return grew - shrank + inside


def difference(before: Inventory, after: Inventory) -> ImageDifference:
    """What became of one image in the other."""
    old = {one.path: one for one in before.files}
    new = {one.path: one for one in after.files}
    both = ((old[path], new[path]) for path in sorted(old.keys() & new.keys()))
    changes = [FileChange(one, other, _aspects(one, other)) for one, other in both]
    return ImageDifference(
        [
            PackageChange(name, before.packages.get(name), after.packages.get(name))
            for name in sorted(before.packages.keys() | after.packages.keys())
            if before.packages.get(name) != after.packages.get(name)
        ],
        [new[path] for path in sorted(new.keys() - old.keys())],
        [old[path] for path in sorted(old.keys() - new.keys())],
        [one for one in changes if one.aspects],
    )


def _aspects(before: ImageFile, after: ImageFile) -> tuple[Aspect, ...]:
    if before.sort is not after.sort:
        return (Aspect.SORT,)
    differs = {
        Aspect.CONTENT: before.content != after.content,
        Aspect.MODE: before.mode != after.mode,
        Aspect.OWNER: (before.uid, before.gid) != (after.uid, after.gid),
    }
    return tuple(aspect for aspect, so in differs.items() if so)
