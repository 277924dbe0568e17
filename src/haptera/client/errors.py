"""What may go wrong with a call: nobody answers, or the answer is a problem."""

import os
from collections.abc import Sequence
from http import HTTPStatus

import msgspec

from haptera.model.errors import Code, HapteraError, InputError
from haptera.rest.problems import ProblemView


class UnreachableError(HapteraError):
    """There is nobody to ask."""

    code = Code.UNREACHABLE


class RefusedError(InputError):
    """The server's problem document, `status` with it: all that is wrong, where, and what to do."""

    def __init__(self, status: int, errors: Sequence[HapteraError]) -> None:
        super().__init__(errors)
        self.status = status


def unreachable(url: str, error: Exception) -> UnreachableError:
    """The failure of a socket in words."""
    return UnreachableError(
        f"cannot reach the parent: {_words(error)}",
        where=url,
        do="check that it runs, and that the client file has its address",
    )


def refused(answer: bytes, url: str, status: int) -> HapteraError:
    """The server's problem document as the error that it was there."""
    try:
        view = msgspec.json.decode(answer, type=ProblemView)
    except (ValueError, RecursionError):
        what = f"answered {status} without an explanation"
        return RefusedError(
            status, [HapteraError(what, where=url, do="see its log", code=Code.VERSION_MISMATCH)]
        )
    if status == HTTPStatus.UNAUTHORIZED:
        advice = (
            "create a new token (haptera token make NAME), because tokens expire and can be"
            " revoked; or use the client file that this parent wrote last, .haptera/client.json"
        )
        return RefusedError(status, [HapteraError(view.what, where=url, do=advice, code=view.code)])
    errors = [
        HapteraError(one.what, where=one.where, do=one.do, code=one.code) for one in view.errors
    ]
    own = HapteraError(view.what, where=view.where, do=view.do, code=view.code)
    return RefusedError(status, errors or [own])


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError) and error.errno is None:
        return "no answer in time"
    from ssl import SSLCertVerificationError, SSLError  # only here: it takes as long as all else

    if isinstance(error, SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message.removesuffix('.')}"
    if isinstance(error, SSLError):  # Its number is no errno.
        return error.reason or str(error)
    # By its number: what asyncio puts in words names the address once more.
    number = error.errno if isinstance(error, OSError) else None
    words = os.strerror(number) if number is not None and number > 0 else str(error)
    return words or type(error).__name__
