"""Small files of a kernel's trees below a root that a test can choose, to read and to write."""

import errno
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from haptera.modules.regular import open_regular, write_regular
from haptera.sdk import HostPath, Refused
from haptera.sdk.owned_files import owned

# No file of /sys and /proc that is read here is longer; of another, this much is read.
TEXT_BYTES_MAX: Final = 65_536
# A folder with more is none of a machine's.
NAMES_MAX: Final = 4_096
_DIGITS: Final = re.compile(r"(\d+)", re.ASCII)
_NUMBER: Final = re.compile(rb"\s*([+-]?[0-9]{1,18})\s*")


@dataclass(frozen=True, slots=True)
class KernelTree:
    """`/sys` and `/proc`, as they stand below a folder."""

    root: Path

    @classmethod
    def at(cls, named: HostPath) -> Self:
        """The trees below a folder that settings name.

        Raises:
            HapteraError: it is not there, or somebody else may put another in its place.
        """
        # The machine's own root may be of anybody: in a namespace of users, root's is nobody's.
        return cls(Path(named) if named == "/" else owned(named))

    def text(self, path: str) -> str | None:
        """The content of a file; None where there is none, or it cannot be read."""
        found = self._bytes(path)
        return None if found is None else found.decode(errors="replace")

    def number(self, path: str) -> int | None:
        """The number that a file says; None where it says none."""
        found = _NUMBER.fullmatch(self._bytes(path) or b"")
        return None if found is None else int(found[1])

    def names(self, folder: str, pattern: str) -> list[str]:
        """The names in a folder that match, in people's order: cpu2 before cpu10."""
        try:
            found = [one.name for one in (self.root / folder).iterdir()]
        except (OSError, ValueError):
            return []
        return sorted(
            (one for one in found[:NAMES_MAX] if re.fullmatch(pattern, one)), key=_in_order
        )

    def has(self, path: str) -> bool:
        """True if the path exists."""
        try:
            return (self.root / path).exists()
        except OSError:
            return False

    def write(self, path: str, text: str) -> None:
        """Write a setting of the kernel; one that is not there is not created.

        Raises:
            OSError: it is not there, is no file, or the kernel refuses the value.
        """
        try:
            write_regular(self.root / path, text.encode())
        except Refused as error:
            raise OSError(errno.EINVAL, str(error)) from None

    def _bytes(self, path: str) -> bytes | None:
        try:
            with open_regular(self.root / path) as file:
                return file.read(TEXT_BYTES_MAX)
        except (OSError, Refused, ValueError):
            # Gone, not there, no file, or a device that does not answer: nothing is known.
            return None


def _in_order(name: str) -> list[tuple[int, str]]:
    parts = _DIGITS.split(name)
    return [(int(one), "") if one.isdecimal() else (-1, one) for one in parts if one]
