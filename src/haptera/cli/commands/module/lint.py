"""`haptera module lint`: what cannot hold of what modules declare."""

import click

from haptera.cli.input.authored import authored
from haptera.cli.main import OK, REFUSED
from haptera.cli.output.findings.findings import levels_options, lint_option, print_findings
from haptera.cli.output.findings.lint_forms import LintForm, Located
from haptera.cli.verb import answers, unwatched
from haptera.core.modules.catalog import own_manifests
from haptera.kinds import KINDS
from haptera.kinds import module as haptera_module
from haptera.lint.lint import lint_kinds
from haptera.model.answers.finding import Finding, Rule
from haptera.model.deprecated import DECLARE_SETTINGS, UNDECLARED_GO
from haptera.modules import BUNDLED


@click.command("lint")
@answers(LintForm)
@unwatched("it reads local files, for which there are no events: run it again")
@click.argument("names", metavar="[MODULE]...", nargs=-1)
@levels_options
@lint_option
def lint_modules(names: tuple[str, ...], output: str, notes: bool, strict: bool) -> int:
    r"""Find contradictions in what modules declare.

    MODULE is the name of a bundled module, FILE.py[:ATTRIBUTE] or PLACE[:ATTRIBUTE]; without one,
    all bundled modules are checked. All are checked together, as on one site.

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
    failed = print_findings(found, output, notes=notes, strict=strict)
    return REFUSED if failed else OK


def _undeclared(name: str) -> Finding:
    text = f"{name} reads settings and does not declare which it takes; {UNDECLARED_GO}"
    kind = haptera_module.kind.name
    return Finding(Rule.UNDECLARED_SETTINGS, f"{kind}:{name}", text, kind, fix=DECLARE_SETTINGS)
