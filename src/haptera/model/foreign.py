"""JSON that another program wrote, read by its shape: absent is None, and what is odd is named."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from haptera.model.errors import HapteraError

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
VALUE_CHARS_MAX: Final = 60

Answer = TypeVar("Answer")


class ForeignError(HapteraError):
    """What another program wrote has a shape that is not known here."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """One value of it; `program` names the program, with its version where that is known.

    Only what is asked for is looked at: any other member may have any shape.

    >>> told = read_foreign("sinfo of Slurm 99", b'{"nodes": [{"name": 7, "state": "IDLE"}]}')
    >>> [(one["name"].text(), one["state"].words()) for one in told["nodes"].items()]
    [('7', ('IDLE',))]
    >>> told["nodes"].number()
    Traceback (most recent call last):
    haptera.model.foreign.ForeignError: sinfo of Slurm 99: nodes is a list, not a number (...)
    """

    program: str
    value: object
    member: str = ""

    def __getitem__(self, name: str) -> "Foreign":
        """A member of an object; of one that is absent, too."""
        if not isinstance(self.value, Mapping | None):
            raise self.unlike("an object")
        value = None if self.value is None else self.value.get(name)
        return Foreign(self.program, value, f"{self.member}.{name}".lstrip("."))

    def items(self) -> list["Foreign"]:
        """The elements of a list; none of one that is absent."""
        if not isinstance(self.value, list | None):
            raise self.unlike("a list")
        return [
            Foreign(self.program, value, f"{self.member}[{at}]")
            for at, value in enumerate(self.value or ())
        ]

    def text(self) -> str | None:
        """A text without NUL, or a number as one."""
        if self.value is None or (isinstance(self.value, str) and "\0" not in self.value):
            return self.value
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.unlike("a text")
        return str(self.value)

    def number(self) -> int | None:
        """A whole number, or a text that is one."""
        if self.value is None or (isinstance(self.value, int) and not isinstance(self.value, bool)):
            return self.value
        if isinstance(self.value, str) and self.value.isascii() and self.value.isdigit():
            return int(self.value[:VALUE_CHARS_MAX])
        raise self.unlike("a number")

    def figure(self) -> float | None:
        """A number, whole or not, or a text that is a whole one."""
        return self.value if isinstance(self.value, float) else self.number()

    def words(self, between: str | None = None) -> tuple[str, ...]:
        """A list of texts; or one text, as itself, or in parts where something stands between."""
        if isinstance(self.value, list):
            return tuple(text for one in self.items() if (text := one.text()) is not None)
        text = self.text() or ""
        return tuple(one for one in (text.split(between) if between else [text]) if one)

    def need(self) -> "Foreign":
        """Itself; it must be there."""
        if self.value is None:
            raise self.unlike("there")
        return self

    def unlike(self, wanted: str) -> ForeignError:
        """The error that says what is here, and what is needed."""
        found = _SORTS.get(type(self.value), "there")
        if isinstance(self.value, str) and "\0" in self.value:
            found = "a text with NUL"
        what = f"{self.program}: {self.member or 'all of it'} is {found}, not {wanted}"
        return ForeignError(what, do="this version of it may not be supported: report it")


_SORTS: Final = {
    type(None): "absent",
    bool: "true or false",
    dict: "an object",
    float: "a fraction",
    int: "a number",
    list: "a list",
    str: "a text",
}


def if_readable(question: Callable[[], Answer]) -> Answer | None:
    """The answer; None where what it is read of has another shape, which concerns no other answer.

    >>> told = read_foreign("smartctl", b'{"temperature": {"current": "warm"}, "worn": 7}')
    >>> if_readable(told["temperature"]["current"].figure), if_readable(told["worn"].figure)
    (None, 7)
    """
    try:
        return question()
    except ForeignError:
        return None


def read_foreign(program: str, content: bytes) -> Foreign:
    """All that a program wrote.

    Raises:
        ForeignError: it is no JSON.
    """
    try:
        value = msgspec.json.decode(content.removeprefix(BYTE_ORDER_MARK))
    except (ValueError, RecursionError) as error:
        begins = " ".join(content[:VALUE_CHARS_MAX].decode(errors="replace").split())
        what = f"{program}: no JSON: {error}; it begins with {begins!r}"
        raise ForeignError(what, do="see by hand what it is") from None
    return Foreign(program, value)
