"""A text being read from left to right; errors have their place."""

import re
from collections import Counter
from typing import Final

from haptera.model.errors import HapteraError, ParseError

SHOWN_MAX: Final = 80
_SPACES: Final = re.compile(r"\s*")


class Reader:
    """Stands before the character `at` of the text, which is `what` errors call it."""

    def __init__(self, text: str, what: str) -> None:
        self.text = text
        self.at = 0
        self._what = what
        self._counts: Counter[str] = Counter()

    @property
    def done(self) -> bool:
        return self.at == len(self.text)

    def skip_spaces(self) -> None:
        self.take(_SPACES)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what the pattern has here, if it has it here."""
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def count(self, what: str, more: int, most: int, at: int) -> None:
        """So many more of these are in the text.

        Raises:
            HapteraError: there are more than `most`.
        """
        self._counts[what] += more
        if self._counts[what] > most:
            raise self.error(f"more than {most} {what}", "ask for fewer at once", at)

    def end(self, do: str) -> None:
        """Nothing is left but spaces.

        Raises:
            HapteraError: something is; `do` is the advice.
        """
        self.skip_spaces()
        if not self.done:
            raise self.error(f"{self.text[self.at]!r} does not belong here", do)

    def error(self, what: str, do: str, at: int | None = None) -> HapteraError:
        """What is wrong at this character, or else where the reader stands."""
        return ParseError(
            what, where=place(self._what, self.text, self.at if at is None else at), do=do
        )


def place(what: str, text: str, at: int) -> str:
    """Where a character of a text is, as errors say it."""
    shown = text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 3]}..."
    return f"{what} {shown!r}, character {at + 1}"
