"""`haptera check`: all that is wrong with a site's files, and what can never be as they desire."""

from collections import Counter
from collections.abc import Sequence

import click
import msgspec

from haptera.cli.input.sites import OF_A_LAB, files_argument, site_constants, site_files
from haptera.cli.main import OK, REFUSED
from haptera.cli.output.findings.findings import (
    are_grave,
    counted,
    levels_options,
    say_findings,
)
from haptera.cli.output.findings.lint_forms import FindingForm, Located, Location, lint_form
from haptera.cli.output.findings.sarif import sarif_text
from haptera.cli.output.printing import (
    SARIF,
    Format,
    checked_option,
    print_data,
    print_entities,
    say,
)
from haptera.cli.verb import answers, unwatched
from haptera.lab.settings import lab_nodes
from haptera.model.errors import HapteraError, each
from haptera.rest.problems import SiteFault, fault
from haptera.runtime.processes.described import described
from haptera.site.lint.lint import lint_site
from haptera.site.model.site import Site, parse_site


class SiteChecked(msgspec.Struct, frozen=True):
    """The cluster, how much of each kind a site has, and what was found.

    If the files cannot be read, all `errors` are listed, and nothing else is known.
    """

    cluster: str | None
    entities: dict[str, int]
    errors: list[SiteFault]
    findings: list[FindingForm]


@click.command()
@answers(SiteChecked)
@unwatched("it reads local files, for which there are no events: run it again")
@files_argument
@click.option(
    "--lab", "for_lab", is_flag=True, help="Check it as a lab reads it: {x} and `lab` are known."
)
@levels_options
@checked_option
def check(files: tuple[str, ...], for_lab: bool, output: str, notes: bool, strict: bool) -> int:
    r"""Report all errors in a site's files, and desired states that can never be reached.

    FILE is a path, a folder, or - for standard input; several files are one site. No parent is
    asked. Modules of your own are run to ask what they declare.

    \b
    Examples:
      haptera check site.yaml
      haptera check --strict -o sarif site/ > site.sarif

    Exit codes: 0 no errors, 1 errors were found (with --strict, warnings), 2 wrong usage.
    """
    try:
        site = _read(files, for_lab=for_lab)
        found = _findings(site)
    except HapteraError as error:
        if output not in (Format.JSON, Format.YAML):
            raise
        print_data(SiteChecked(None, {}, [*map(fault, each(error))], []), output)
        return REFUSED
    _print(site, found, output, notes=notes)
    return REFUSED if are_grave(found, strict=strict) else OK


def _read(files: tuple[str, ...], *, for_lab: bool) -> Site:
    site = parse_site(site_files(files), site_constants(files, OF_A_LAB if for_lab else {}))
    if for_lab:
        nodes = [one for one in site.entities if one.entity.kind == "node"]
        lab_nodes({one.entity.name: one.attributes for one in nodes}, site.lab)
    return site


def _findings(site: Site) -> list[Located]:
    return [
        Located(
            one.finding,
            None
            if one.place is None
            else Location(one.place.file, one.place.line, one.place.column),
        )
        for one in lint_site(site, described(site.own))
    ]


def _print(site: Site, found: Sequence[Located], output: str, *, notes: bool) -> None:
    counts = Counter(one.entity.kind for one in site.entities)
    if output == SARIF:
        say(sarif_text(found))
    elif Format(output).for_people:
        say_findings(found, notes=notes)
        told = [f"{count} {kind if count == 1 else plural(kind)}" for kind, count in counts.items()]
        told_found = counted(found, notes=notes)
        say(f"cluster {site.cluster}: {', '.join(told) or 'nothing'}; {told_found}")
    else:
        if Format(output) is Format.NAME:
            say_findings(found, notes=notes, err=True)
        names = [str(one.entity) for one in site.entities]
        forms = lint_form(found).findings
        answer = SiteChecked(site.cluster, dict(sorted(counts.items())), [], forms)
        print_entities(names, answer, output)


def plural(kind: str) -> str:
    """The plural of a kind's name.

    >>> plural("node"), plural("policy")
    ('nodes', 'policies')
    """
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
