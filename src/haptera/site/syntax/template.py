"""Values with holes, `10.1.{rack}.{n+100}`, filled for each node."""

import re
from collections.abc import Callable
from typing import Final

from haptera.model.declared.desired_check import nearest
from haptera.model.errors import HapteraError, LimitError, ParseError, UnknownNameError

# What stands for a name; it raises a HapteraError where nothing does.
Known = Callable[[str], str]

HOLE_CHARS_MAX: Final = 200
NUMBER_MAX: Final = 2**63 - 1

_HOLE = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<inside>[^{}]*)\}|(?P<alone>[{}])")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?|[0-9]+")
_FORM = re.compile(r"(?:0[1-9][0-9]?)?[dxX]?")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?)|(?P<sign>//|[-+*%()]))\s*"
)
# What the second octet of a lab's addresses is called, which is known in a lab only.
LAB_OCTET: Final = "x"
_IN_LABS: Final = "only a lab knows it: `haptera lab` starts one; to check a lab's site, add --lab"
# As a mapping begins, in braces.
_PAIR = re.compile(r"\s*[A-Za-z_]+:\s")
_DO = "write {NAME}, {NAME+1} or {NAME:02}; braces of the text itself are doubled: {{ or }}"


def fill(text: str, known: Known) -> str:
    """The text with each hole filled; `{{` and `}}` are braces.

    >>> fill("{name} is at 10.1.{rack}.{n+100:d}", {"name": "r1n02", "rack": "1", "n": "02"}.get)
    'r1n02 is at 10.1.1.102'

    Raises:
        HapteraError: a hole cannot be filled, or a brace stands alone.
    """
    if "{" not in text and "}" not in text:
        return text
    return _HOLE.sub(lambda hole: _filled(hole, known), text)


def _filled(hole: re.Match[str], known: Known) -> str:
    if hole["brace"] is not None:
        return hole["brace"][0]
    if hole["alone"] is not None:
        raise ParseError(
            f"unmatched brace at character {hole.start() + 1}", do="double it: {{ or }}"
        )
    inside, colon, form = hole["inside"].partition(":")
    if _NAME.fullmatch(inside) and not colon:
        return known(inside)
    if len(inside) > HOLE_CHARS_MAX or _FORM.fullmatch(form) is None:
        raise _unreadable(hole["inside"][:80])
    number = _number(inside, known) if _NAME.fullmatch(inside) else _Sum(inside, known).value()
    if number < 0:
        raise ParseError(f"{hole[0]} is {number} here", do="make it 0 or more")
    return format(number, form or "d")


def _number(name: str, known: Known) -> int:
    text = known(name)
    if not (text.isascii() and text.isdigit()):
        raise ParseError(f"{{{name}}} is {text[:40]!r} here, no number", do="leave it as it is")
    return _bounded(int(text[:100]))


def _bounded(number: int) -> int:
    if abs(number) > NUMBER_MAX:
        raise LimitError(
            "a number in a placeholder does not fit 64 bits", do="use a smaller number"
        )
    return number


class _Sum:
    """What a hole counts: `+ - * // %` and parentheses over names and whole numbers."""

    def __init__(self, text: str, known: Known) -> None:
        self._text = text
        self._known = known
        self._tokens = [*reversed(_tokens(text))]

    def value(self) -> int:
        found = self._sum()
        if self._tokens:
            raise self._unread()
        return found

    def _sum(self) -> int:
        found = self._product()
        while (sign := self._next()) in ("+", "-"):
            self._tokens.pop()
            one = self._product()
            found = _bounded(found + one if sign == "+" else found - one)
        return found

    def _product(self) -> int:
        found = self._single()
        while (sign := self._next()) in ("*", "//", "%"):
            self._tokens.pop()
            one = self._single()
            if sign == "*":
                found = _bounded(found * one)
            elif one == 0:
                raise ParseError(
                    f"{{{self._text}}}: division by zero", do="use a divisor that cannot be 0"
                )
            else:
                found = found // one if sign == "//" else found % one
        return found

    def _single(self) -> int:
        token = self._next()
        if token is None or token in (*"+-*%)", "//"):
            raise self._unread()
        self._tokens.pop()
        if token.isdigit():
            return _bounded(int(token))
        if token != "(":
            return _number(token, self._known)
        found = self._sum()
        if self._next() != ")":
            raise self._unread()
        self._tokens.pop()
        return found

    def _next(self) -> str | None:
        return self._tokens[-1] if self._tokens else None

    def _unread(self) -> HapteraError:
        return _unreadable(self._text)


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise _unreadable(text)
        found.append(token[0].strip())
        at = token.end()
    return found


def _unreadable(text: str) -> HapteraError:
    """The error of a hole that is none; one that looks like a mapping was hardly meant as one."""
    do = f"for a mapping, leave out the quotes: {{{text}}}" if _PAIR.match(text) else _DO
    return ParseError(f"{{{text}}} cannot be read", do=do)


def unknown(name: str, names: list[str]) -> HapteraError:
    """The error of a hole whose name nothing stands for."""
    do = _IN_LABS if name == LAB_OCTET else nearest(name, sorted(set(names)))
    return UnknownNameError(f"unknown placeholder {{{name}}}", do=do)
