"""`haptera module lint` and `haptera lint`: what cannot hold of modules, and of sites."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final

import click
import msgspec

from haptera.cli.commands.module.authored import authored
from haptera.cli.input.sites import OF_A_LAB, files_argument, site_constants, site_files
from haptera.cli.main import OK, REFUSED
from haptera.cli.output.lint_forms import Located, Location, lint_form
from haptera.cli.output.lint_words import shown
from haptera.cli.output.sarif import sarif
from haptera.cli.output.words import printable
from haptera.core.modules.catalog import own_manifests
from haptera.kinds import KINDS
from haptera.kinds import module as haptera_module
from haptera.lint.lint import lint_kinds
from haptera.model.deprecated import DECLARE_SETTINGS, UNDECLARED_GO
from haptera.model.finding import Finding, Level, Rule
from haptera.modules import BUNDLED
from haptera.runtime.processes.described import described
from haptera.site.lint.lint import lint_site
from haptera.site.model.site import parse_site
from haptera.site.syntax.tree import Place

COLOURS: Final = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "blue"}


class LintFormat(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What all lint commands can be told."""
    for option in (
        click.option("--strict", is_flag=True, help="Exit with 1 for warnings, too."),
        click.option("--notes", is_flag=True, help="Also show what may well be meant so."),
        click.option(
            "-o",
            "--output",
            type=click.Choice([one.value for one in LintFormat]),
            default=LintFormat.TEXT.value,
            help="How to write what is found.",
        ),
    ):
        command = option(command)
    return command


@click.command("lint")
@click.argument("names", metavar="[MODULE]...", nargs=-1)
@options
def lint_modules(names: tuple[str, ...], output: str, notes: bool, strict: bool) -> int:
    r"""Look for what cannot hold in what modules declare.

    MODULE is the name of a bundled module, FILE.py[:ATTRIBUTE] or PLACE[:ATTRIBUTE]; without any,
    all bundled ones are looked at. They are taken together, as on one site.

    \b
    Examples:
      haptera module lint examples/first_module/outlet.py
      haptera module lint labnode service -o sarif > lint.sarif

    Exit codes: 0 no errors, 1 errors were found (with --strict, warnings), 2 wrong usage.
    """
    modules = [authored(name) for name in dict.fromkeys(names or BUNDLED)]
    manifests = [one.manifest for one in modules]
    places = {path: place for one in modules for path, place in one.places.items()}
    # What is of no part stands where the first of its kind does.
    kinds = {part.kind: part.path for one in manifests[::-1] for part in one.parts[::-1]}
    found = [
        Located(one, places.get(one.part or kinds.get(one.kind, "")))
        for one in lint_kinds(KINDS, manifests, own_manifests(KINDS))
        if one.kind in kinds
    ]
    found += [
        Located(_undeclared(one.manifest.name), one.reading)
        for one in modules
        if one.reading is not None
    ]
    return tell(found, output, notes=notes, strict=strict)


def _undeclared(name: str) -> Finding:
    text = f"{name} reads settings and does not declare which it takes; {UNDECLARED_GO}"
    kind = haptera_module.kind.name
    return Finding(Rule.UNDECLARED_SETTINGS, f"{kind}:{name}", text, kind, fix=DECLARE_SETTINGS)


@click.command("lint")
@files_argument
@click.option("--lab", "for_lab", is_flag=True, help="As a lab reads it: {x} is known.")
@options
def lint_files(
    files: tuple[str, ...], for_lab: bool, output: str, notes: bool, strict: bool
) -> int:
    r"""Look for what can never be as a site desires it, with the modules that it names.

    FILE is a path, a folder of files, or - for standard input; all of them are one site. No parent
    is asked; of modules of its own a process is run, which tells what they declare. What cannot
    even be read is told as by `haptera site check`.

    \b
    Examples:
      haptera lint site.yaml
      haptera lint --strict -o sarif site/ > site.sarif

    Exit codes: 0 no errors, 1 errors were found (with --strict, warnings), 2 wrong usage.
    """
    site = parse_site(site_files(files), site_constants(files, OF_A_LAB if for_lab else {}))
    found = [
        Located(one.finding, None if one.place is None else _location(one.place))
        for one in lint_site(site, described(site.own))
    ]
    return tell(found, output, notes=notes, strict=strict)


def _location(place: Place) -> Location:
    return Location(place.file, place.line, place.column)


def tell(found: Sequence[Located], output: str, *, notes: bool, strict: bool) -> int:
    """Write what was found; the exit code."""
    match LintFormat(output):
        case LintFormat.JSON:
            click.echo(msgspec.json.format(msgspec.json.encode(lint_form(found)), indent=2))
        case LintFormat.SARIF:
            click.echo(msgspec.json.format(msgspec.json.encode(sarif(found)), indent=2))
        case LintFormat.TEXT:
            _tell(found, notes=notes)
    grave = (Level.ERROR, Level.WARNING) if strict else (Level.ERROR,)
    return REFUSED if any(one.finding.level in grave for one in found) else OK


def _tell(found: Sequence[Located], *, notes: bool) -> None:
    for one in found:
        if notes or one.finding.level is not Level.NOTE:
            level, finding = one.finding.level, one.finding
            head = f"{level}: {finding.place}: {finding.text} [{finding.rule}]"
            click.secho(printable(head), fg=COLOURS[level])
            place = () if one.location is None else (str(one.location),)
            for line in (*place, *shown(finding)):
                click.echo(f"  {printable(line)}")
    click.echo(_counted([one.finding.level for one in found], notes=notes))


def _counted(levels: Sequence[Level], *, notes: bool) -> str:
    """How many there are of each level, and how to see those that were left out."""
    counts = {level: levels.count(level) for level in Level}
    told = [f"{count} {level}{'s'[: count - 1]}" for level, count in counts.items() if count]
    if not told:
        return "nothing wrong"
    left_out = "" if notes or not counts[Level.NOTE] else " (--notes shows notes)"
    return f"{', '.join(told)}{left_out}"
