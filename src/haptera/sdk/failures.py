"""The report of a call that failed, and its lines in the module's log."""

import errno
import sys
import traceback
from collections.abc import Callable, Collection, Iterable
from types import TracebackType
from typing import Final
from urllib.parse import quote

PACKAGE: Final = __name__.partition(".")[0]
TEXT_BYTES_MAX: Final = 500
# How soon the same failure is printed again, and of how many it is known when it last was.
PRINT_AGAIN_NS: Final = 60_000_000_000
PRINTED_MAX: Final = 256
# A shorter secret is a part of other words: to leave it out would tell more than it hides.
SECRET_CHARACTERS_MIN: Final = 4

# How a module's own user comes to open a device: it keeps its daemon's groups that own devices.
OPEN_DEVICE: Final = (
    "give the device a group that may read and write it (by a udev rule), and the daemon that"
    " group (`SupplementaryGroups=` in its unit)"
)
_KEPT_OUT: Final = (errno.EACCES, errno.EPERM, errno.EROFS)

# What was raised, with its file and line.
_Place = tuple[type[BaseException], str, int]


class Failures:
    """Tells what a module's functions raise.

    An exception speaks for itself where its class is haptera's, or is defined in the module's own
    package: its words alone are shown. Any other comes from Python or a library: it is shown with
    its type, and its traceback is printed, once a minute for each line that raises it.
    """

    def __init__(self, packages: Collection[str], now: Callable[[], int]) -> None:
        self._packages = {PACKAGE, *packages}
        self._now = now
        self._printed: dict[_Place, int] = {}

    def describe(self, error: Exception, what: str, secrets: Iterable[str] = ()) -> str:
        """The words for `why`, cut; what was called stands above a traceback that is printed.

        None of them has a secret in it: the other side may say again what it was sent.
        """
        secrets = tuple(secrets)
        name, words = type(error).__name__, concealed(str(error), secrets)
        if type(error).__module__.partition(".")[0] in self._packages:
            return cut(words or name, TEXT_BYTES_MAX)
        self._print(error, what, secrets)
        return cut(f"{name}: {words}{_hint(error)}" if words else name, TEXT_BYTES_MAX)

    def _print(self, error: Exception, what: str, secrets: Iterable[str]) -> None:
        now, place = self._now(), _place(error)
        last = self._printed.pop(place, None)
        if last is not None and now < last + PRINT_AGAIN_NS:
            self._printed[place] = last
            return
        if len(self._printed) >= PRINTED_MAX:
            del self._printed[next(iter(self._printed))]
        self._printed[place] = now
        lines = concealed("".join(traceback.format_exception(error)), secrets)
        sys.stderr.write(f"{what} failed:\n{lines}")


def concealed(text: str, secrets: Iterable[str]) -> str:
    """The text without these secrets, as they are and as a URL has them.

    >>> concealed("401 for /login?key=a%2Fb-c (a/b-c)", ["a/b-c"])
    '401 for /login?key=*** (***)'
    """
    for one in secrets:
        if len(one) >= SECRET_CHARACTERS_MIN:
            text = text.replace(one, "***").replace(quote(one, safe=""), "***")
    return text


def cut(text: str, bytes_max: int) -> str:
    """The text as far as it fits, in whole characters."""
    return text.encode(errors="replace")[:bytes_max].decode(errors="ignore")


def _hint(error: Exception) -> str:
    """What a module may do about a file that it was not let use."""
    if not isinstance(error, OSError) or error.errno not in _KEPT_OUT or error.filename is None:
        return ""
    if str(error.filename).startswith("/dev/"):
        return f" (declare `devices` in the module's `needs`; if that is so, {OPEN_DEVICE})"
    return " (a module writes in its `run_dir`, and below what it declares in `writes`)"


def _place(error: Exception) -> _Place:
    last: TracebackType | None = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return type(error), "", 0
    return type(error), last.tb_frame.f_code.co_filename, last.tb_lineno
