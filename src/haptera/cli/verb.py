"""A verb's declarations besides its options: its answers as JSON, and why it has no --watch."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

_ANSWERS: Final = "__haptera_answers__"
_UNWATCHED: Final = "__haptera_unwatched__"
_OPTION: Final = ("-w", "--watch")

Callback = TypeVar("Callback", bound=Callable[..., Any])


def answers(*shapes: Any) -> Callable[[Callback], Callback]:
    """What the verb can write with `-o json`, as types."""
    return lambda callback: _with(callback, _ANSWERS, shapes)


def unwatched(why: str) -> Callable[[Callback], Callback]:
    """Why the verb has no --watch, and what to type instead."""
    return lambda callback: _with(callback, _UNWATCHED, why)


def answers_of(verb: click.Command) -> tuple[Any, ...]:
    return getattr(verb.callback, _ANSWERS, ())


def unwatched_of(verb: click.Command) -> str | None:
    return getattr(verb.callback, _UNWATCHED, None)


def explained(error: click.NoSuchOption) -> click.UsageError:
    """The error, with what to type instead where it is of a verb without --watch."""
    why = None if error.ctx is None else unwatched_of(error.ctx.command)
    if error.ctx is None or why is None or error.option_name not in _OPTION:
        return error
    verb = error.ctx.command_path.partition(" ")[2]
    return click.UsageError(f"{verb} has no --watch: {why}", error.ctx)


def _with(callback: Callback, name: str, value: object) -> Callback:
    setattr(callback, name, value)
    return callback
