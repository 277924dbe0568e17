"""Findings as text, JSON or SARIF: and the options of both lint commands."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final

import click
import msgspec

from haptera.cli.output.findings.lint_forms import Located, lint_form
from haptera.cli.output.findings.lint_words import shown
from haptera.cli.output.findings.sarif import sarif
from haptera.cli.output.printing import remember, say
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
            say(msgspec.json.format(msgspec.json.encode(sarif(found)), indent=2).decode())
        case LintFormat.TEXT:
            _tell(found, notes=notes)
    grave = (Level.ERROR, Level.WARNING) if strict else (Level.ERROR,)
    return any(one.finding.level in grave for one in found)


def _tell(found: Sequence[Located], *, notes: bool) -> None:
    for one in found:
        if notes or one.finding.level is not Level.NOTE:
            level, finding = one.finding.level, one.finding
            head = f"{level}: {finding.place}: {finding.text} [{finding.rule}]"
            say(printable(head), fg=COLOURS[level])
            place = () if one.location is None else (str(one.location),)
            for line in (*place, *shown(finding)):
                say(f"  {printable(line)}")
    say(_counted([one.finding.level for one in found], notes=notes))


def _counted(levels: Sequence[Level], *, notes: bool) -> str:
    """How many there are of each level, and how to see those that were left out."""
    counts = {level: levels.count(level) for level in Level}
    told = [f"{count} {level}{'s'[: count - 1]}" for level, count in counts.items() if count]
    if not told:
        return "nothing wrong"
    left_out = "" if notes or not counts[Level.NOTE] else " (--notes shows notes)"
    return f"{', '.join(told)}{left_out}"


def lint_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What all lint commands can be told."""
    for option in (
        click.option("--strict", is_flag=True, help="Exit with 1 on warnings too."),
        click.option(
            "--notes", is_flag=True, help="Also show notes: findings that may be intended."
        ),
        click.option(
            "-o",
            "--output",
            type=click.Choice([one.value for one in LintFormat]),
            default=LintFormat.TEXT.value,
            callback=remember,
            help="Output format.",
        ),
    ):
        command = option(command)
    return command
