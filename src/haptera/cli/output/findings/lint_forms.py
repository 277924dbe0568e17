"""Findings for programs: what `-o json` writes, and where each of them stands."""

from collections.abc import Iterable

import msgspec

from haptera.model.answers.finding import Example, Finding, Level, Rule


class Location(msgspec.Struct, frozen=True, order=True):
    """Where something stands in a file, lines and columns counted from 1."""

    file: str
    line: int
    column: int | None = None

    def __str__(self) -> str:
        column = "" if self.column is None else f":{self.column}"
        return f"{self.file}:{self.line}{column}"


class FindingForm(msgspec.Struct, frozen=True):
    """One fault: its rule, how grave it is, where, what, examples, and what to do."""

    rule: Rule
    level: Level
    kind: str
    place: str
    part: str | None
    variable: str | None
    location: Location | None
    text: str
    examples: tuple[Example, ...]
    fix: str | None


class LintForm(msgspec.Struct, frozen=True):
    """All findings, the gravest first."""

    findings: list[FindingForm]


class Located(msgspec.Struct, frozen=True):
    """A finding, and where it stands, if that is known."""

    finding: Finding
    location: Location | None


def lint_form(found: Iterable[Located]) -> LintForm:
    return LintForm([_finding(one.finding, one.location) for one in found])


def _finding(one: Finding, location: Location | None) -> FindingForm:
    return FindingForm(
        one.rule,
        one.level,
        one.kind,
        one.place,
        one.part,
        one.variable,
        location,
        one.text,
        one.examples,
        one.fix,
    )
