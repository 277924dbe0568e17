"""Writing answers: tables for people, JSON and YAML for programs, errors for both."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeVar

import click
import msgspec

from haptera.model.entity import EntityId, parse_entity
from haptera.model.errors import HapteraError, each
from haptera.model.text import shown
from haptera.rest.problems import Faults, fault

_ENTITY: Final = re.compile(r"\b[a-z][a-z0-9_-]*:[A-Za-z0-9][\w.-]*(?:@[\w.-]*\w)?\b", re.ASCII)

# A sentence without a subject: it is of the place that it is said of.
NO_SUBJECT: Final = re.compile(
    r"(is|are|was|were|has|have|holds|lacks|needs|gives|belongs|runs|does not|cannot be|can only) "
)

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


# Where the context of a call keeps how its answer, and so its errors, are written.
_FORMAT: Final = "haptera.output"


def remember(ctx: click.Context, _option: click.Parameter, output: str) -> str:
    """Have errors of this call written as its answer is."""
    ctx.meta[_FORMAT] = output
    return output


def form_option(
    forms: Iterable[str], names: str = "", default: str = Format.TABLE
) -> Callable[[Command], Command]:
    """The option `-o` with these forms."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice([str(one) for one in forms]),
        default=str(default),
        callback=remember,
        help=f"Output format{names}.",
    )


output_option = form_option([Format.TABLE, Format.JSON, Format.YAML])
# Where the answer is about entities, also as one selector that means them.
_ENTITIES: Final = "; wide: all columns, no line wrap; name: one SELECTOR"
entities_option = form_option(Format, _ENTITIES)
# Where it is about what is wrong with them, also as code scanning reads it.
SARIF: Final = "sarif"
checked_option = form_option([*Format, SARIF], _ENTITIES)
# Where it is about what has names of its own: secrets, modules, the ids of tokens.
names_option = form_option(Format, "; wide: no line wrap; name: one name a line")


class Coloured(NamedTuple):
    """A part of a line in a colour of its own."""

    text: str
    colour: str | None


def say(*parts: str | Coloured, fg: str | None = None, err: bool = False, nl: bool = True) -> None:
    """Write a text: what others have said steers no terminal, but for the colours given here.

    All that the command line writes goes through here (tests/cli/test_saying.py).
    """
    text = "".join(_styled(*one) if isinstance(one, Coloured) else shown(one) for one in parts)
    click.echo(click.style(text, fg=fg) if fg else text, err=err, nl=nl, color=colours())


def print_document(text: str) -> None:
    """Write a document, in UTF-8 whatever the terminal has."""
    click.echo(shown(text).encode(), nl=False)


def _styled(text: str, colour: str | None) -> str:
    return click.style(shown(text), fg=colour)


def print_data(data: object, output: str, *, err: bool = False) -> None:
    """Write an answer for programs, whole and in one piece."""
    if Format(output) is Format.YAML:
        import yaml  # only here: it takes as long as the rest of a command

        say(yaml.safe_dump(msgspec.to_builtins(data), sort_keys=False), nl=False, err=err)
    else:
        say(msgspec.json.format(msgspec.json.encode(data), indent=2).decode(), err=err)


def print_entities(names: Sequence[str], data: object, output: str) -> None:
    """Write entities for programs: their names as one selector, or their whole answers."""
    if Format(output) is not Format.NAME:
        print_data(data, output)
    elif names:
        from haptera.selectors.selector import fold_entities  # only here: most answers are no names

        say(fold_entities(map(parse_entity, names)))


def print_names(names: Iterable[str], data: object, output: str) -> None:
    """Write what has names of its own: these, one a line, or for programs the whole answer."""
    if Format(output) in (Format.JSON, Format.YAML):
        print_data(data, output)
        return
    for name in names:
        say(name)


def print_error(error: HapteraError) -> None:
    """Write what is wrong, where, and what to do to standard error, in the form of the answer."""
    context = click.get_current_context(silent=True)
    output = None if context is None else context.meta.get(_FORMAT)
    if output in (Format.JSON, Format.YAML):
        print_data(Faults([*map(fault, each(error))]), output, err=True)
        return
    for one in folded([*map(with_subject, each(error))]):
        say(f"error: {one.what}", err=True, fg="red")
        for line in (one.where, one.do):
            if line is not None:
                say(f"  {line}", err=True)


def with_subject(error: HapteraError) -> HapteraError:
    """The same, saying of what, once: also where that was said by the place alone.

    >>> print(with_subject(HapteraError("is not empty", where="new/", do="name another")).what)
    new/ is not empty
    """
    place = error.where
    if place is None or "\n" in place:
        return error
    if NO_SUBJECT.match(error.what):
        return HapteraError(f"{place} {error.what}", do=error.do, code=error.code)
    said = error.what.startswith(f"{place} ")
    return HapteraError(error.what, do=error.do, code=error.code) if said else error


def folded(errors: Sequence[HapteraError]) -> list[HapteraError]:
    """These errors; those that differ only in the node whose entity they name are one.

    >>> some = [HapteraError(f"power of node:n{one} is bob's", where=str(one)) for one in (1, 2, 3)]
    >>> [str(one.what) for one in folded(some)]
    ["power of node:n[1-3] is bob's"]
    """
    alike: dict[tuple[str, ...], list[tuple[HapteraError, EntityId | None]]] = {}
    for one in errors:
        text, entity = _named(one.what)
        title, where = (entity.title, "") if entity else ("", one.where or "")
        key = (text, title, one.do or "", where)
        alike.setdefault(key, []).append((one, entity))
    return [_one_for(key[0], some) for key, some in alike.items()]


def _named(what: str) -> tuple[str, EntityId | None]:
    """The first entity that an error names, and its words without that name."""
    found = _ENTITY.search(what)
    if found is None:
        return what, None
    try:
        entity = parse_entity(found[0])
    except HapteraError:
        return what, None
    return f"{what[: found.start()]}\0{what[found.end() :]}", entity


def _one_for(text: str, some: Sequence[tuple[HapteraError, EntityId | None]]) -> HapteraError:
    """One error for all of these, at the place of the first."""
    first, entity = some[0]
    if len(some) == 1 or entity is None:
        return first
    from haptera.selectors.selector import fold_entities  # only here: it parses

    names = fold_entities(one for _, one in some if one is not None)
    what = text.replace("\0", names)
    return HapteraError(what, where=first.where, do=first.do, code=first.code)


def colours() -> bool | None:
    """False where the environment wants none (no-color.org); None: on a terminal only."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def is_terminal() -> bool:
    return sys.stdout.isatty()
