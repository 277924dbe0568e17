"""The boundary of one item among many that one task serves: what goes wrong with it is its own."""

import logging
from types import TracebackType
from typing import Self

from haptera.model.errors import HapteraError
from haptera.model.text import showable

# The words of these say what is wrong; any other needs its name.
_SPEAKING = (HapteraError, OSError)

_log = logging.getLogger(__name__)


class Boundary:
    """Turns any exception of one item into that item's failure, with its traceback in the log.

    Whoever serves the item looks at `fault` then; what ends the process, or cancels, goes on, and
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
        # Named by where the item is served: what is logged too often is left out by its place.
        _log.error("%s failed", self._item, exc_info=error, stacklevel=2)
        return True

    @property
    def fault(self) -> str | None:
        """What went wrong, as a line for people; None where nothing did."""
        if self.error is None:
            return None
        name, words = type(self.error).__name__, str(self.error)
        speaks = words and isinstance(self.error, _SPEAKING)
        return showable(words if speaks else f"{name}: {words}" if words else name)
