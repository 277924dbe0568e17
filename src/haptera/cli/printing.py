"""Writing answers: tables for people, JSON and YAML for programs, errors for both."""

import sys
from collections.abc import Sequence
from enum import StrEnum

import click
import msgspec

from haptera.model.entity import parse_entity
from haptera.model.errors import HapteraError, InputError


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


_NO_NAMES = [one.value for one in Format if one is not Format.NAME]
output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(_NO_NAMES),
    default=Format.TABLE.value,
    help="How to write the answer.",
)
# Where the answer is entities, also as one selector that means them.
entities_option = click.option(
    "-o",
    "--output",
    type=click.Choice([one.value for one in Format]),
    default=Format.TABLE.value,
    help="How to write the answer; name: the entities as one SELECTOR.",
)


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
        from haptera.model.selector import fold_entities  # only here: most answers are no names

        click.echo(fold_entities(map(parse_entity, names)))


def print_table(rows: Sequence[Sequence[str]], colours: Sequence[str | None] = ()) -> None:
    """Write rows in columns as wide as they must be; a colour for each row's second column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for index, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        if colours and (colour := colours[index]) is not None:
            cells[1] = click.style(cells[1], fg=colour)
        click.echo("  ".join(cells).rstrip())


def print_error(error: HapteraError) -> None:
    """Write what is wrong, where, and what to do: all of it, to standard error."""
    for one in error.errors if isinstance(error, InputError) else (error,):
        click.secho(f"error: {one.what}", err=True, fg="red")
        for line in (one.where, one.do):
            if line is not None:
                click.echo(f"  {line}", err=True)


def is_terminal() -> bool:
    return sys.stdout.isatty()
