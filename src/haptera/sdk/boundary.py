"""The boundary of one item among many that one task serves: what goes wrong with it is its own."""

import logging
from types import TracebackType
from typing import Final, Self

from haptera.model.text import showable

PACKAGE: Final = __name__.partition(".")[0]

_log = logging.getLogger(__name__)


class Boundary:
    """Turns any exception of one item into that item's failure, with its traceback in the log.

    What haptera itself raises says all in its words, and needs none. The item's server looks
    at `fault` then; what ends the process, or cancels, goes on, and
    so does what is to `pass_on`.

    >>> with Boundary("job 7") as job:
    ...     _ = bytes.fromhex("7")
    >>> job.fault
    'ValueError: non-hexadecimal number found in fromhex() arg at position 1'
    """

    __slots__ = ("_item", "_pass_on", "error")

    def __init__(self, item: str, pass_on: tuple[type[Exception], ...] = ()) -> None:
        self._item = item
        self._pass_on = pass_on
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, self._pass_on):
            return False
        self.error = error
        # As of where the item is served: what is logged too often is left out by its place.
        if _is_ours(error):
            _log.warning("%s: %s", self._item, error, stacklevel=2)
        else:
            _log.error("%s failed", self._item, exc_info=error, stacklevel=2)
        return True

    @property
    def fault(self) -> str | None:
        """What went wrong, as a line for people; None where nothing did."""
        if self.error is None:
            return None
        name, words = type(self.error).__name__, str(self.error)
        speaks = words and (_is_ours(self.error) or isinstance(self.error, OSError))
        return showable(words if speaks else f"{name}: {words}" if words else name)


def _is_ours(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] == PACKAGE
