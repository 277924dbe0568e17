"""Findings as SARIF 2.1.0, as code scanning takes them."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

import haptera
from haptera.cli.output.findings.lint_forms import Located, Location
from haptera.cli.output.findings.lint_words import shown
from haptera.model.answers.finding import RULES, Finding, Rule

VERSION: Final = "2.1.0"
SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
# By this one tells a finding again after lines have moved.
FINGERPRINT: Final = "hapteraFinding/v1"

Json = dict[str, Any]


def sarif_text(found: Iterable[Located]) -> str:
    """The same as text."""
    return msgspec.json.format(msgspec.json.encode(sarif(found)), indent=2).decode()


def sarif(found: Iterable[Located]) -> Json:
    """One run that succeeded, with all rules, and a result for each finding."""
    driver = {
        "name": "haptera",
        "version": haptera.__version__,
        "rules": [_rule(rule) for rule in Rule],
    }
    return {
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [{"executionSuccessful": True}],
                "columnKind": "unicodeCodePoints",
                "results": [_result(one) for one in found],
            }
        ],
    }


def _rule(rule: Rule) -> Json:
    about = RULES[rule]
    return {
        "id": rule.value,
        "shortDescription": {"text": about.text},
        "help": {"text": f"See docs/reference/lint.md, under {rule.value}."},
        "defaultConfiguration": {"level": about.level.value},
    }


def _result(one: Located) -> Json:
    finding = one.finding
    location: Json = {"logicalLocations": [{"fullyQualifiedName": finding.place}]}
    if one.location is not None:
        location["physicalLocation"] = _physical(one.location)
    return {
        "ruleId": finding.rule.value,
        "ruleIndex": list(Rule).index(finding.rule),
        "level": finding.level.value,
        "message": {"text": _message(finding)},
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: _fingerprint(finding)},
    }


def _message(finding: Finding) -> str:
    return "\n".join([finding.text, *shown(finding)])


def _physical(location: Location) -> Json:
    region = {"startLine": location.line}
    if location.column is not None:
        region["startColumn"] = location.column
    return {"artifactLocation": {"uri": _uri(location.file)}, "region": region}


def _uri(file: str) -> str:
    """Below the working directory, relative to it, as code scanning wants it."""
    path = Path(file).resolve()
    here = Path.cwd()
    return quote(path.relative_to(here).as_posix()) if path.is_relative_to(here) else path.as_uri()


def _fingerprint(finding: Finding) -> str:
    """The same for the same fault of the same part, whatever lines it stands on."""
    told = "\0".join((finding.rule, finding.kind, finding.place, finding.text))
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
