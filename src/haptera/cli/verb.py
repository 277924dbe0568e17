"""A verb's declarations besides its options: its answers as JSON, and why it has no --watch."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

import click

from haptera.cli.output.printing import say

_ANSWERS: Final = "__haptera_answers__"
_UNWATCHED: Final = "__haptera_unwatched__"
_OPTION: Final = ("-w", "--watch")

Result = TypeVar("Result")
Callback = TypeVar("Callback", bound=Callable[..., Any])


def former_option(old: str, new: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """A former name of an option: it does the same, and says the present name."""
    former, name = (option.strip("-").replace("-", "_") for option in (old, new))

    def decorated(command: Callable[..., Result]) -> Callable[..., Result]:
        @click.option(old, former, hidden=True)
        @wraps(command)
        def renamed(*given: object, **named: object) -> Result:
            value = named.pop(former)
            if value is not None:
                say(f"warning: {old} is called {new} now", err=True, fg="yellow")
                named[name] = value
            return command(*given, **named)

        return renamed

    return decorated


def answers(*shapes: Any) -> Callable[[Callback], Callback]:
    """Declare what the verb can write with `-o json`, as types."""
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
