"""Findings as text, JSON or SARIF, and the options of the commands that find them."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final

import click
import msgspec

from haptera.cli.output.findings.lint_forms import Located, lint_form
from haptera.cli.output.findings.lint_words import shown
from haptera.cli.output.findings.sarif import sarif_text
from haptera.cli.output.printing import form_option, say
from haptera.cli.output.words import printable
from haptera.model.answers.finding import Level

COLOURS: Final = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "blue"}


class LintFormat(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


def print_findings(found: Sequence[Located], output: str, *, notes: bool, strict: bool) -> bool:
    """Print what was found; returns whether any of it is an error (with `strict`, a warning)."""
    match LintFormat(output):
        case LintFormat.JSON:
            say(msgspec.json.format(msgspec.json.encode(lint_form(found)), indent=2).decode())
        case LintFormat.SARIF:
            say(sarif_text(found))
        case LintFormat.TEXT:
            say_findings(found, notes=notes)
            say(counted(found, notes=notes))
    return are_grave(found, strict=strict)


def are_grave(found: Sequence[Located], *, strict: bool) -> bool:
    """True if any finding is an error (with `strict`, a warning)."""
    grave = (Level.ERROR, Level.WARNING) if strict else (Level.ERROR,)
    return any(one.finding.level in grave for one in found)


def say_findings(found: Sequence[Located], *, notes: bool, err: bool = False) -> None:
    """Write each finding for people; notes only if asked for."""
    for one in found:
        if notes or one.finding.level is not Level.NOTE:
            level, finding = one.finding.level, one.finding
            head = f"{level}: {finding.place}: {finding.text} [{finding.rule}]"
            say(printable(head), fg=COLOURS[level], err=err)
            place = () if one.location is None else (str(one.location),)
            for line in (*place, *shown(finding)):
                say(f"  {printable(line)}", err=err)


def counted(found: Sequence[Located], *, notes: bool) -> str:
    """How many there are of each level, and how to see those that were left out."""
    levels = [one.finding.level for one in found]
    counts = {level: levels.count(level) for level in Level}
    told = [f"{count} {level}{'s'[: count - 1]}" for level, count in counts.items() if count]
    if not told:
        return "nothing is wrong"
    left_out = "" if notes or not counts[Level.NOTE] else " (--notes shows notes)"
    return f"{', '.join(told)}{left_out}"


def levels_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that show notes and make warnings fail."""
    strict = click.option("--strict", is_flag=True, help="Exit with 1 on warnings too.")
    notes = click.option(
        "--notes", is_flag=True, help="Also show notes: findings that may be intended."
    )
    return strict(notes(command))


lint_option = form_option(LintFormat, default=LintFormat.TEXT)
