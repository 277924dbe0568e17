"""Sorts of text: what each lets in, to its last character."""

import msgspec
import pytest

from haptera.model.text import Argument, Content, Line, Path, User, is_line, showable, steering

CONTROLS = [chr(one) for one in (*range(32), *range(0x7F, 0xA0), 0x2028, 0x202E, 0x2066)]


def fits(text: str, sort: object) -> bool:
    try:
        msgspec.convert(text, sort)
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize("sort", [Line, Path, User])
@pytest.mark.parametrize("control", CONTROLS)
def test_no_line_has_a_control_wherever_it_is(sort: object, control: str) -> None:
    assert [fits(one, sort) for one in (control, f"a{control}b", f"a{control}")] == [False] * 3


@pytest.mark.parametrize("sort", [Argument, Content])
def test_what_programs_read_has_all_but_nul(sort: object) -> None:
    assert fits("".join(one for one in CONTROLS if one != "\0"), sort)
    assert not fits("a\0", sort)


def test_letters_of_all_scripts_are_text() -> None:
    for one in ("naïve", "日本", "שלום", "🖥", ""):
        assert fits(one, Line)
        assert steering(one) is None


def test_what_steers_is_named() -> None:
    assert [steering(one) for one in ("a\tb\n", "\x1b[1m", "\ud800")] == [None, "U+001B", "U+D800"]


def test_what_a_device_says_is_shown_as_a_line() -> None:
    said = showable("\x1b[1m no\r\n  disk \u202e \ud800" + "a" * 600)
    assert is_line(said)
    assert said.startswith("?[1m no disk ? ?a")
