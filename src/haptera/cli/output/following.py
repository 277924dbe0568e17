"""`haptera logs --follow`: what is added to a log, by asking for its end again and again."""

import contextlib
import select
from http import HTTPStatus
from typing import Final

import click

from haptera.cli.output.printing import print_error
from haptera.cli.output.words import printable
from haptera.client import ApiCall, Client, RefusedError
from haptera.client.protocol import BACK_OFF_S
from haptera.model.errors import HapteraError
from haptera.rest.schemas import LogView

ASK_EVERY_S: Final = 1.0

# As what the bytes of a character read that was cut in two.
_CUT: Final = "\ufffd"
_MAY_LACK: Final = "more was written than is kept, or the log began anew: something may be missing"
_MAY_NOT: Final = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


def follow(client: Client, call: ApiCall[LogView], shown: LogView) -> None:
    """Write what is added to what was shown, until Ctrl-C.

    Who does not answer is asked again later and later, and that is told once.

    Raises:
        RefusedError: one may not ask any more.
    """
    last, failed = "\n".join(shown.lines), 0
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            pause_s = BACK_OFF_S[min(failed, len(BACK_OFF_S)) - 1] if failed else ASK_EVERY_S
            select.select((), (), (), pause_s)
            try:
                text = "\n".join(client.ask(call).lines)
            except HapteraError as error:
                if isinstance(error, RefusedError) and error.status in _MAY_NOT:
                    raise
                if not failed:
                    print_error(error)
                failed += 1
                continue
            _write(last, text)
            last, failed = text, 0


def _write(last: str, text: str) -> None:
    more = added(last, text)
    if more is None:
        click.echo(_MAY_LACK, err=True)
        more = text.splitlines()
    for line in more:
        click.echo(printable(line))


def added(last: str, text: str) -> list[str] | None:
    r"""The lines of a log's end that an earlier end of it lacks; None where no two parts agree.

    The later end begins with the longest part that the earlier one ends with, in mid-line perhaps.
    A line that was not complete is given again, whole.

    >>> added("one\ntwo", "ne\ntwo\nthree")
    ['three']
    >>> added("one\ntw", "one\ntwo\nthree")
    ['two', 'three']
    """
    if last == text:
        return []
    if not last:
        return text.split("\n")
    text = text.lstrip(_CUT)
    same = _overlap(last.rstrip(_CUT), text)
    if same == 0:
        return None
    if same == len(text):
        return []
    begin = same + 1 if text[same] == "\n" else text.rfind("\n", 0, same) + 1
    return text[begin:].split("\n")


def _overlap(last: str, text: str) -> int:
    """How long the longest beginning of `text` is that `last` ends with, in one pass over both."""
    joined = (*text, None, *last)
    # Of each beginning of these, how much of its own beginning it ends with (Knuth, Morris, Pratt).
    borders = [0]
    for one in joined[1:]:
        size = borders[-1]
        while size and one != joined[size]:
            size = borders[size - 1]
        borders.append(size + (one == joined[size]))
    return borders[-1]
