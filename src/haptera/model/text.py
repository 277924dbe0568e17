"""Text from people, programs and devices: a type for each meaning, checked where it comes in.

Each has its limit, and no sort of them has NUL: it ends a text early wherever the kernel reads it.
Halves of characters (lone surrogates) are in none, as no decoder of JSON lets them in.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final

from msgspec import Meta

LINE_CHARS_MAX: Final = 512
ARGUMENT_BYTES_MAX: Final = 32_768
CONTENT_CHARS_MAX: Final = 8 << 20
PATH_CHARS_MAX: Final = 4_096
USER_CHARS_MAX: Final = 32
# A number of so many digits may not fit 64 bits.
DIGITS_END: Final = 19

# What steers a terminal, or has a line read otherwise than it is: controls, ends of lines, and
# changes of direction, but for tab and newline.
STEERING: Final = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
_STEERING: Final = re.compile(rf"[{STEERING}\ud800-\udfff]")
# Not `$`, which lets a newline pass at the end.
_END: Final = r"(?![\s\S])"
_LINE: Final = rf"^[^{STEERING}\t\n]*{_END}"
_NO_NUL: Final = rf"^[^\x00]*{_END}"
# An account's name, as useradd(8) has it; a number could be another's.
_USER: Final = rf"^[A-Za-z_][A-Za-z0-9_.-]*{_END}"

# For people, in one line: a name, a reason. A value of a variable of the environment, too.
# Where it is another, the limit is set there.
OneLine = Annotated[str, Meta(pattern=_LINE)]
Line = Annotated[OneLine, Meta(max_length=LINE_CHARS_MAX)]
# A word of a command: all that a program can be handed.
Argument = Annotated[str, Meta(pattern=_NO_NUL, max_length=ARGUMENT_BYTES_MAX)]
# What has a parser of its own, which refuses all else: a site's file, a selector, an entity.
Content = Annotated[str, Meta(pattern=_NO_NUL, max_length=CONTENT_CHARS_MAX)]
Path = Annotated[OneLine, Meta(max_length=PATH_CHARS_MAX)]
User = Annotated[str, Meta(pattern=_USER, max_length=USER_CHARS_MAX)]

# Of each sort, what one is that is none.
SORTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        _LINE: "text in one line, without control characters",
        _NO_NUL: "text without the character U+0000",
        _USER: "the name of an account",
    }
)


def steering(text: str) -> str | None:
    """The first character of a text that cannot be displayed, as it is written: U+0000."""
    found = _STEERING.search(text)
    return None if found is None else f"U+{ord(found[0]):04X}"


def whole_number(text: str) -> int | None:
    """The number that a text is in ASCII digits, if it fits 64 bits.

    `str.isdigit` takes other digits, too, some of which `int` reads; and of thousands `int` reads
    none.

    >>> whole_number("07"), whole_number("²"), whole_number("-1"), whole_number("9" * 5_000)
    (7, None, None, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < DIGITS_END else None


def is_line(text: str) -> bool:
    """Whether a text is a `Line`, however long."""
    return re.search(_LINE, text) is not None


def in_words(error: str) -> str:
    r"""The decoder's sentence, with a sort of text named and not its regular expression.

    >>> in_words(rf"Expected `str` matching regex {_NO_NUL!r} - at `$.name`")
    'Expected text without the character U+0000 - at `$.name`'
    """
    for pattern, words in SORTS.items():
        error = error.replace(f"`str` matching regex {pattern!r}", words)
    return error


def shown(text: str) -> str:
    r"""The text, in which what steers a terminal is seen instead, as JSON would write it.

    >>> print(shown("\x1b[1mno\u202edisk"))
    \u001b[1mno\u202edisk
    """
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def showable(text: str, chars_max: int = LINE_CHARS_MAX) -> str:
    r"""The beginning of a text that a device or a program has said, as a line for people.

    >>> showable("\x1b[1mno\ndisk", 40)
    '?[1mno disk'
    """
    line = " ".join(text[:chars_max].split())
    return "".join(one if one.isprintable() else "?" for one in line)
