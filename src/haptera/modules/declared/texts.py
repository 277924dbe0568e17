"""Texts of a declaration: templates that are filled for an entity, and paths into an answer."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from haptera.sdk import HapteraError, Refused

WORDS_MAX: Final = 200
TEXT_CHARS_MAX: Final = 256
_HOLE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.]*)\}")
_STEP: Final = re.compile(r"""(?:^|\.)([A-Za-z_][\w-]*)|\[([0-9]{1,6})\]|\["([^"]{1,80})"\]""")
# Of what no shell and no command line of a switch reads anything but a word.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:@,+=-]+")

Path = tuple[str | int, ...]


def holes(text: str) -> list[str]:
    """The names that stand in braces.

    >>> holes("/nodes/{name}/{slot}")
    ['name', 'slot']
    """
    return _HOLE.findall(text)


def filled(text: str, known: Mapping[str, str | int], write: Callable[[str], str] = str) -> str:
    """The text with each hole filled, each value as `write` writes it.

    Raises:
        Refused: nothing is known for one.
    """

    def value(hole: re.Match[str]) -> str:
        if hole[1] not in known:
            raise Refused(f"it has no {hole[1]}")
        return write(str(known[hole[1]]))

    return _HOLE.sub(value, text)


def filled_path(text: str, known: Mapping[str, str | int]) -> str:
    """A path of a URL; what fills it is one segment each, or a part of one, whatever it is.

    >>> filled_path("/nodes/{name}?at={at}", {"name": "a/../b?x=1#", "at": "ü"})
    '/nodes/a%2F..%2Fb%3Fx%3D1%23?at=%C3%BC'

    Raises:
        Refused: it would lead elsewhere, or nothing is known for a hole.
    """
    path = filled(text, known, lambda one: quote(one, safe=""))
    # Of the same number of parts, for no value has a slash of its own.
    parts = zip(text.partition("?")[0].split("/"), path.partition("?")[0].split("/"), strict=True)
    if any(part != whole and whole in ("", ".", "..") for part, whole in parts):
        raise Refused(f"{words(path)} is no path below that of the API")
    return path


def filled_words(texts: list[str], known: Mapping[str, str | int]) -> list[str]:
    """The words of a command; none that a value begins is an option.

    ssh joins its words to a line, which a shell or a switch reads anew: there a value is plain.

    >>> filled_words(["ping", "-c1", "{name}"], {"name": "n 1; id"})
    ['ping', '-c1', 'n 1; id']

    Raises:
        Refused: one would be, cannot be a word, or would be read as more than one elsewhere.
    """
    is_read_anew = any(text.rpartition("/")[2] == "ssh" for text in texts)
    found = [filled(text, known, _plain if is_read_anew else str) for text in texts]
    for text, word in zip(texts, found, strict=True):
        if (text.startswith("{") and word.startswith("-")) or "\0" in word:
            raise Refused(f"{words(word)} would be read as an option")
    return found


def _plain(value: str) -> str:
    if _PLAIN.fullmatch(value) is None:
        raise Refused(f"{words(value)} would be read as a command at the other end of ssh")
    return value


def filled_data(data: Any, known: Mapping[str, str | int]) -> Any:
    """JSON with each hole in its texts filled: a text that is one hole may become a number.

    >>> filled_data({"to": "{count}", "as": ["{name}!"]}, {"count": 3, "name": 'a"b'})
    {'to': 3, 'as': ['a"b!']}
    """
    match data:
        case dict():
            return {key: filled_data(one, known) for key, one in data.items()}
        case list():
            return [filled_data(one, known) for one in data]
        case str():
            whole = _HOLE.fullmatch(data)
            value = None if whole is None else known.get(whole[1])
            return value if isinstance(value, int) else filled(data, known)
        case _:
            return data


def path_of(text: str) -> Path:
    """Read a path into JSON: `status.power`, `items[0].id`, `["@odata.id"]`.

    >>> path_of('members[0]["@odata.id"].x-y')
    ('members', 0, '@odata.id', 'x-y')

    Raises:
        HapteraError: it is none.
    """
    found: list[str | int] = []
    at = 0
    while at < len(text) and (step := _STEP.match(text, at)) is not None:
        name, number, quoted = step.groups()
        found.append(int(number) if number is not None else name or quoted)
        at = step.end()
    if at != len(text) or not found:
        do = 'write names with dots, as status.power, items[0] or ["@odata.id"]'
        raise HapteraError(f"{text[:80]!r} is no path into an answer", do=do)
    return tuple(found)


def found_at(data: Any, path: Path) -> Any:
    """The value at this path; None where there is none, whatever is there instead."""
    for step in path:
        match data, step:
            case dict(), str():
                data = data.get(step)
            case list(), int() if step < len(data):
                data = data[step]
            case _:
                return None
    return data


def text_of(value: Any) -> str | None:
    """A text, number or truth as text; None of anything else, and of one that is too long.

    >>> [text_of(one) for one in ("on", 3, True, None, {}, "x" * 1000)]
    ['on', '3', 'true', None, None, None]
    """
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        return None
    text = str(value)
    return text if len(text) <= TEXT_CHARS_MAX else None


def words(text: str) -> str:
    r"""What another program said, as one short line that can be printed anywhere.

    >>> words("no\x1b[2J such\n image")
    'no [2J such image'
    """
    plain = "".join(one if one.isprintable() else " " for one in text[: WORDS_MAX * 4])
    return " ".join(plain.split())[:WORDS_MAX]
