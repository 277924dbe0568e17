"""`haptera module test`: recorded answers, played to the modules that a site file declares."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec

from haptera.cli.input.sites import OF_A_LAB, site_constants, site_files
from haptera.cli.main import OK, REFUSED
from haptera.cli.output.printing import say
from haptera.cli.output.words import printable
from haptera.cli.verb import unwatched
from haptera.model.errors import HapteraError, InputError, ParseError, UnreadableError
from haptera.modules.declared.api import DeclaredSettings
from haptera.modules.declared.recorded import RecordedCase, faults_of
from haptera.modules.declared.terms import Declaration
from haptera.rest.schemas import SiteFile
from haptera.sdk import Secret, Setup
from haptera.site.model.site import parse_site
from haptera.site.syntax.sources import read_tree
from haptera.site.syntax.tree import Errors, plain_data

# The token that stands in for the real one in these tests.
TOKEN = Secret("recorded-token")


@click.command("test")
@unwatched("it runs once")
@click.argument("site", type=click.Path())
@click.argument("recorded", type=click.Path(dir_okay=False))
def test_declared(site: str, recorded: str) -> int:
    r"""Play the answers in RECORDED to the modules that the site file SITE declares.

    Nothing is asked of any system. Each case of RECORDED names a look or step of an entity, the
    answers to what it asks, and what comes of it: docs/reference/declared.md.

    \b
    Examples:
      haptera module test site.yaml recorded.yaml
      haptera module test site/ recorded/appliances.yaml

    Exit codes: 0 all is as recorded, 1 something is not, 2 wrong usage.
    """
    found = parse_site(site_files((site,)), site_constants((site,), OF_A_LAB))
    declared = {
        one.name: msgspec.json.decode(one.declares, type=Declaration)
        for one in found.own
        if one.declares is not None
    }
    failed = 0
    for case in _cases(Path(recorded)):
        faults = _faults(case, declared)
        failed += bool(faults)
        say(f"{'FAILED' if faults else 'ok':<7} {printable(str(case))}")
        for fault in faults:
            say(f"  {printable(fault)}")
    return REFUSED if failed else OK


def _cases(path: Path) -> list[RecordedCase]:
    errors = Errors()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"cannot be read: {error}", where=str(path)) from None
    tree = read_tree(SiteFile(str(path), text), errors)
    errors.check()
    try:
        return msgspec.convert(plain_data(tree), list[RecordedCase])
    except msgspec.ValidationError as error:
        do = "see docs/reference/declared.md"
        raise InputError([ParseError(str(error), where=str(path), do=do)]) from None


def _faults(case: RecordedCase, declared: dict[str, Declaration]) -> list[str]:
    part = case.look or case.step or ""
    for name, terms in declared.items():
        if part in terms.looks or part in terms.steps:
            with TemporaryDirectory(prefix="haptera-") as folder:
                setup = Setup(DeclaredSettings(TOKEN), Path(folder))
                return asyncio.run(faults_of(case, name, terms, setup))
    raise HapteraError(f"no module of the site declares {part!r}", do="name a look or a step")
