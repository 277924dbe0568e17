"""The pages on `module check`, on a module in Perl, and on manifests say what the code does."""

import re
from dataclasses import MISSING, fields
from pathlib import Path

import click

from haptera.cli.commands.module.check import check
from haptera.conformance import CHECKS, OF_PARTS
from haptera.model.parts import Change, Look, Manifest, Requirement, Sampler, Setting, Step
from haptera.model.policy import Policy
from haptera.model.reading import Reading

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/module-check.md").read_text(encoding="utf-8")
FRAMES = (ROOT / "docs/reference/frames.md").read_text(encoding="utf-8")
IN_PERL = (ROOT / "docs/tutorial/lamp-in-perl.md").read_text(encoding="utf-8")
DECLARED = {
    "manifest": Manifest,
    "look": Look,
    "step": Step,
    "sampler": Sampler,
    "reading": Reading,
    "change": Change,
    "condition": Requirement,
    "policy": Policy,
    "setting": Setting,
}


def test_the_page_names_all_checks_in_their_order() -> None:
    named = re.findall(
        r"^\| `([a-z-]+)(?: NAME)?` \|", PAGE.split("## The checks")[1], re.MULTILINE
    )
    at = list(CHECKS).index("refuses-late-steps")

    assert named == [*list(CHECKS)[:at], *OF_PARTS, *list(CHECKS)[at:]]


def test_the_page_names_all_options() -> None:
    there = {one.opts[-1] for one in check.params if isinstance(one, click.Option)}

    told = re.findall(r"^\| `(-[-a-z]+)", PAGE, re.MULTILINE)
    assert sorted(told) == sorted((there - {"--output"}) | {"-o"})


def test_the_table_of_the_manifest_has_all_keys_and_their_defaults() -> None:
    table = FRAMES.split("## The manifest")[1].split("\n\n")[2]
    told: dict[str, dict[str, str]] = {}
    for line in table.splitlines()[2:]:
        of, keys, _, default, _ = (one.strip() for one in line.strip("|").split("|"))
        if of:
            shape = told.setdefault(of, {})
        shape |= dict.fromkeys(re.findall(r"`(\w+)`", keys), default)

    assert told == {name: defaults(shape) for name, shape in DECLARED.items()}


def defaults(shape: type) -> dict[str, str]:
    """Each key of a declaration, and its default as the page writes it."""
    found = {one.name: written(one.default) for one in fields(shape)}
    if shape is Step:
        found |= dict.fromkeys(("requires", "excludes", "cost", "context"), "as a look's")
    return found


def written(default: object) -> str:
    match default:
        case Policy(attempts, backoff, most, cool_down):
            return f"{attempts}, {backoff}, {most}, {cool_down}"
        case bool():
            return str(default).lower()
        case int():
            return str(default)
        case float():
            return f"{default:g}".replace("e+", "e")
        case ():
            return "`[]`"
        case None:
            return "nil"
        case _ if default is MISSING:
            return ""
    return f"`{default}`" if default != "" else "empty"


def test_the_site_file_of_the_lamps_is_as_the_page_shows_it() -> None:
    shown = re.findall(r"^```yaml site.yaml\n(.*?)^```$", IN_PERL, re.DOTALL | re.MULTILINE)

    assert shown == [(ROOT / "examples/lamp_in_perl/site.yaml").read_text(encoding="utf-8")]
