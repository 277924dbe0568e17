"""What a module's function raised, as `why` tells it, and what stands in the module's log of it."""

import errno
import json

import pytest

from haptera.sdk import HapteraError, Refused
from haptera.sdk.failures import OPEN_DEVICE, PRINT_AGAIN_NS, PRINTED_MAX, TEXT_BYTES_MAX, Failures


class StripError(Exception):
    """A module's own: what it says needs no type beside it."""


def of_a_library() -> None:
    json.loads("<html>")


def of_python() -> None:
    int("one")


def of_the_system() -> None:
    raise OSError("no route")


def without_words() -> None:
    raise TimeoutError


def of_the_module() -> None:
    raise StripError("outlet 3 is locked")


def of_the_sdk() -> None:
    raise HapteraError("outlet 3 is locked", do="unlock it")


def of_the_device() -> None:
    raise Refused("outlet 3 is locked")


@pytest.mark.parametrize(
    ("raises", "told"),
    [
        (of_a_library, "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
        (of_python, "ValueError: invalid literal for int() with base 10: 'one'"),
        (of_the_system, "OSError: no route"),
        (without_words, "TimeoutError"),
    ],
)
def test_what_python_or_a_library_raises_is_told_with_its_type_and_printed(
    raises, told, capsys: pytest.CaptureFixture[str]
) -> None:
    failures = Failures(("tests",), lambda: 0)
    assert failures.describe(raised(raises), "look of node:n1") == told
    printed = capsys.readouterr().err
    assert printed.startswith("look of node:n1 failed:\nTraceback (most recent call last):\n")
    assert f"in {raises.__name__}\n" in printed


@pytest.mark.parametrize(
    ("raises", "told"),
    [
        (of_the_module, "outlet 3 is locked"),
        (of_the_sdk, "outlet 3 is locked (unlock it)"),
        (of_the_device, "outlet 3 is locked"),
    ],
)
def test_what_the_author_raises_in_own_words_is_told_bare_and_not_printed(
    raises, told, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Failures(("tests",), lambda: 0).describe(raised(raises), "look of node:n1") == told
    assert capsys.readouterr().err == ""


def test_one_line_that_raises_again_and_again_is_printed_once_a_minute(
    capsys: pytest.CaptureFixture[str],
) -> None:
    times = [0]
    failures = Failures(("tests",), lambda: times[-1])

    def printed(raises) -> bool:
        failures.describe(raised(raises), "look of node:n1")
        return capsys.readouterr().err != ""

    assert [printed(of_python), printed(of_python), printed(of_the_system)] == [True, False, True]
    times.append(PRINT_AGAIN_NS - 1)
    assert not printed(of_python)
    times.append(PRINT_AGAIN_NS)
    assert printed(of_python)


def test_of_more_lines_than_are_kept_the_one_printed_longest_ago_is_forgotten(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failures = Failures((), lambda: 0)
    for number in range(PRINTED_MAX):
        failures.describe(type(f"Bug{number}", (Exception,), {})("no"), "look")
    failures.describe(raised(of_python), "look")
    failures.describe(raised(of_python), "look")
    assert capsys.readouterr().err.count(" failed:\n") == PRINTED_MAX + 1


def test_long_words_are_cut_with_their_type() -> None:
    told = Failures((), lambda: 0).describe(ValueError("ü" * TEXT_BYTES_MAX), "look")
    assert told.startswith("ValueError: ü")
    assert TEXT_BYTES_MAX - 1 <= len(told.encode()) <= TEXT_BYTES_MAX


def raised(raises) -> Exception:
    try:
        raises()
    except Exception as error:  # noqa: BLE001  whichever it is
        return error
    raise AssertionError("nothing was raised")


WRITES = " (a module writes in its `run_dir`, and below what it declares in `writes`)"
DEVICES = f" (declare `devices` in the module's `needs`; if that is so, {OPEN_DEVICE})"


@pytest.mark.parametrize(
    ("number", "path", "hint"),
    [
        (errno.EACCES, "/srv/boot/grub.cfg", WRITES),
        (errno.EROFS, "/etc/hosts", WRITES),
        (errno.EPERM, "/dev/kvm", DEVICES),
        (errno.ENOENT, "/srv/boot/grub.cfg", ""),
        (errno.EACCES, None, ""),
    ],
)
def test_what_a_module_may_not_use_is_told_with_what_would_let_it(
    number: int, path: str | None, hint: str
) -> None:
    error = OSError(number, "refused", path)
    told = Failures([], lambda: 0).describe(error, "start")
    assert told == f"{type(error).__name__}: {error}{hint}"
