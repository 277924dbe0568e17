"""Writing answers: tables for people, JSON and YAML for programs, errors for both."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import click
import msgspec

from haptera.model.entity import parse_entity
from haptera.model.errors import HapteraError, InputError

Command = TypeVar("Command", bound=Callable[..., Any])


class Format(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"

    @property
    def for_people(self) -> bool:
        """Whether people read it, in a table or in sentences."""
        return self in (Format.TABLE, Format.WIDE)


def _option(forms: Iterable[Format], names: str = "") -> Callable[[Command], Command]:
    return click.option(
        "-o",
        "--output",
        type=click.Choice([one.value for one in forms]),
        default=Format.TABLE.value,
        help=f"How to write the answer{names}.",
    )


output_option = _option([Format.TABLE, Format.JSON, Format.YAML])
# Where the answer is about entities, also as one selector that means them.
entities_option = _option(Format, "; wide: all columns, no line wrapped; name: one SELECTOR")
# Where it is about what has names of its own: secrets, modules, the ids of tokens.
names_option = _option(Format, "; wide: no line wrapped; name: the names alone, one a line")


def print_data(data: object, output: str) -> None:
    """Write an answer for programs, whole and in one piece."""
    if Format(output) is Format.YAML:
        import yaml  # only here: it takes as long as the rest of a command

        click.echo(yaml.safe_dump(msgspec.to_builtins(data), sort_keys=False), nl=False)
    else:
        click.echo(msgspec.json.format(msgspec.json.encode(data), indent=2))


def print_entities(names: Sequence[str], data: object, output: str) -> None:
    """Write entities for programs: their names as one selector, or all that is told of them."""
    if Format(output) is not Format.NAME:
        print_data(data, output)
    elif names:
        from haptera.selectors.selector import fold_entities  # only here: most answers are no names

        click.echo(fold_entities(map(parse_entity, names)))


def print_names(names: Iterable[str], data: object, output: str) -> None:
    """Write what has names of its own: these, one a line, or for programs all that is told."""
    if Format(output) in (Format.JSON, Format.YAML):
        print_data(data, output)
        return
    for name in names:
        click.echo(name)


def print_error(error: HapteraError) -> None:
    """Write what is wrong, where, and what to do: all of it, to standard error."""
    for one in error.errors if isinstance(error, InputError) else (error,):
        click.secho(f"error: {one.what}", err=True, fg="red", color=colours())
        for line in (one.where, one.do):
            if line is not None:
                click.echo(f"  {line}", err=True)


def colours() -> bool | None:
    """False where the environment wants none (no-color.org); None: on a terminal only."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def is_terminal() -> bool:
    return sys.stdout.isatty()
