"""`haptera lint`: what can never be as a site desires it."""

import click

from haptera.cli.input.sites import OF_A_LAB, files_argument, site_constants, site_files
from haptera.cli.main import OK, REFUSED
from haptera.cli.output.findings.findings import lint_options, print_findings
from haptera.cli.output.findings.lint_forms import Located, Location
from haptera.runtime.processes.described import described
from haptera.site.lint.lint import lint_site
from haptera.site.model.site import parse_site
from haptera.site.syntax.tree import Place


@click.command("lint")
@files_argument
@click.option("--lab", "for_lab", is_flag=True, help="Check it as a lab reads it: {x} is known.")
@lint_options
def lint_files(
    files: tuple[str, ...], for_lab: bool, output: str, notes: bool, strict: bool
) -> int:
    r"""Find states that a site desires and that can never be reached.

    FILE is a path, a folder, or - for standard input; several files are one site. No parent is
    asked. Modules of your own are run to ask what they declare. Syntax errors are reported as by
    `haptera site check`.

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
    failed = print_findings(found, output, notes=notes, strict=strict)
    return REFUSED if failed else OK


def _location(place: Place) -> Location:
    return Location(place.file, place.line, place.column)
