"""`haptera module check`: whether an executable speaks the frames as a module must."""

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from haptera.cli.main import OK, REFUSED
from haptera.cli.output.printing import say
from haptera.cli.output.words import printable
from haptera.cli.verb import answers, unwatched
from haptera.conformance import (
    CHECKS,
    OF_PARTS,
    CheckedModule,
    CheckResult,
    CheckVerdict,
    Report,
    check_module,
)
from haptera.kinds.brought import MODULES_GROUP, brought, the_one
from haptera.model.declared.desired_check import nearest
from haptera.model.entity import check_name, parse_entity
from haptera.model.errors import HapteraError
from haptera.model.parts import Context
from haptera.modules import BUNDLED
from haptera.runtime.processes.places import ModulePlace
from haptera.site.model.modules import PLACE

COLOURS: Final = {
    CheckVerdict.PASSED: "green",
    CheckVerdict.FAILED: "red",
    CheckVerdict.SKIPPED: "yellow",
}


class CheckForm(msgspec.Struct, frozen=True):
    """What `-o json` prints; `module` is null where it did not begin."""

    module: str | None
    passed: int
    failed: int
    skipped: int
    checks: tuple[CheckResult, ...]


@click.command("check", context_settings={"allow_interspersed_args": False})
@answers(CheckForm)
@unwatched("it runs once")
@click.argument("words", metavar="CMD...", nargs=-1, required=True)
@click.option("--act", is_flag=True, help="Run steps too; each look must find a value.")
@click.option("--setting", "settings", metavar="NAME=VALUE", multiple=True, help="A setting.")
@click.option("--secret", "secrets", metavar="NAME", multiple=True, help="A generated setting.")
@click.option("--entity", metavar="ENTITY", help="The entity, instead of node:n01.")
@click.option(
    "--attribute", "attributes", metavar="NAME=VALUE", multiple=True, help="An attribute."
)
@click.option("--value", "values", metavar="NAME=VALUE", multiple=True, help="A plain value.")
@click.option("--only", metavar="CHECK", multiple=True, help="Run only this check, and `begins`.")
@click.option("--strict", is_flag=True, help="Count skipped checks as failed.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def check(
    words: tuple[str, ...],
    act: bool,
    only: tuple[str, ...],
    strict: bool,
    output: str,
    **given: Any,
) -> int:
    r"""Check that a module follows the protocol of docs/reference/frames.md, by calling it.

    CMD is any command with its arguments, started as a daemon starts it; or one word for a Python
    module: FILE.py[:ATTRIBUTE], PLACE:ATTRIBUTE, or the name of an installed one. Without --act
    only looks and invalid requests are sent, which change nothing.

    \b
    Examples:
      haptera module check --act perl lamp.pl
      haptera module check --attribute bmc=127.0.0.1:4280 outlet.py

    Exit codes: 0 all passed, 1 one failed (with --strict, was skipped), 2 wrong usage.
    """
    subject = _subject(words, acts=act, **given)
    _check_names(only)
    report = check_module(subject, _tell if output == "text" else lambda _: None, only=only)
    if output == "json":
        text = msgspec.json.format(msgspec.json.encode(_form(report)), indent=2).decode()
        say(text)
    else:
        say(_counted(report))
    grave = (CheckVerdict.FAILED, CheckVerdict.SKIPPED) if strict else (CheckVerdict.FAILED,)
    return REFUSED if any(report.count(one) for one in grave) else OK


def _subject(
    words: Sequence[str],
    *,
    acts: bool,
    settings: Iterable[str],
    secrets: tuple[str, ...],
    entity: str | None,
    attributes: Iterable[str],
    values: Iterable[str],
) -> CheckedModule:
    return CheckedModule(
        place_of(words),
        settings=_pairs(settings, _value),
        secrets=secrets,
        entity=None if entity is None else parse_entity(entity),
        attributes=_pairs(attributes, str),
        values=_pairs(values, lambda text: int(text) if text.isdecimal() else text),
        acts=acts,
    )


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if name not in CHECKS and name.partition(" ")[0] not in OF_PARTS:
            do = f"{nearest(name, CHECKS)}, or 'look NAME'"
            raise click.BadParameter(f"there is no check {name!r}: {do}")


def place_of(words: Sequence[str]) -> ModulePlace:
    """Where the module is that these words name: Python's, or a command.

    Raises:
        BadParameter: they name a file or a program that is not there.
    """
    folder = str(Path.cwd())
    if len(words) > 1 or not _is_python(words[0]):
        _check_program(words[0])
        name = _name(Path(words[0]).stem)
        return ModulePlace(name, Context.SELF, folder, command=tuple(words))
    if words[0] in BUNDLED:
        return ModulePlace(words[0], Context.SELF, folder, place=BUNDLED[words[0]])
    if words[0] in (there := brought(MODULES_GROUP)):
        place = the_one(there[words[0]]).place
        return ModulePlace(words[0], Context.SELF, folder, place=place)
    file, _, attribute = words[0].partition(":")
    if not file.endswith(".py"):
        return ModulePlace(_name(attribute), Context.SELF, folder, place=words[0])
    path = Path(file).resolve()
    if not path.is_file():
        raise click.BadParameter(f"there is no file {file}")
    place = f"{path.stem}:{attribute or 'module'}"
    if PLACE.fullmatch(place) is None:
        raise click.BadParameter(
            f"{path.name} cannot be imported: {path.stem!r} is not a valid module name"
        )
    return ModulePlace(_name(path.stem), Context.SELF, str(path.parent), place=place)


def _check_program(word: str) -> None:
    if shutil.which(word) is not None:
        return
    if Path(word).is_file():
        raise click.BadParameter(
            f"{word} is not executable: chmod +x it, or write the program that runs it first"
        )
    raise click.BadParameter(f"there is no program {word}: name one in PATH, or write its path")


def _is_python(word: str) -> bool:
    """Python's to import; a file that may be run is a command."""
    if word.partition(":")[0].endswith(".py"):
        return not os.access(word, os.X_OK)
    return word in {*BUNDLED, *brought(MODULES_GROUP)} or PLACE.fullmatch(word) is not None


def _name(text: str) -> str:
    """What it is called until it has said its name."""
    try:
        return check_name(text)
    except HapteraError:
        return "checked"


def _pairs(given: Iterable[str], meant: Callable[[str], Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{one!r} has no value: write NAME=VALUE")
        found[name] = meant(value)
    return found


def _value(text: str) -> Any:
    """A setting: what JSON makes of it, or else the text."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text


def _tell(one: CheckResult) -> None:
    say(printable(f"{one.verdict}  {one.name}: {one.seen}"), fg=COLOURS[one.verdict])
    if one.do is not None:
        say(f"  do: {printable(one.do)}")


def _counted(report: Report) -> str:
    counts = ((one, report.count(one)) for one in CheckVerdict)
    told = [f"{count} {one}" for one, count in counts if count]
    return f"{report.module or 'no module'}: {', '.join(told)}"


def _form(report: Report) -> CheckForm:
    passed, failed, skipped = (report.count(one) for one in CheckVerdict)
    return CheckForm(report.module, passed, failed, skipped, report.checks)
