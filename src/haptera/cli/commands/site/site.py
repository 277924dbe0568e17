"""`haptera site`: what can be said of site files without a parent."""

import json
from collections import Counter
from collections.abc import Iterator

import click
import msgspec

from haptera.cli.input.sites import OF_A_LAB, files_argument, site_constants, site_files
from haptera.cli.lazy import Words
from haptera.cli.main import REFUSED
from haptera.cli.output.printing import (
    Format,
    entities_option,
    print_data,
    print_entities,
    print_error,
    say,
)
from haptera.cli.output.words import printable
from haptera.lab.settings import lab_nodes
from haptera.model.errors import HapteraError, each
from haptera.model.parts import Manifest
from haptera.modules import load
from haptera.rest.problems import SiteFault, fault
from haptera.runtime.processes.described import described
from haptera.site.model.settings import check_secrets, settings_of
from haptera.site.model.site import Site, parse_site


class SiteChecked(msgspec.Struct, frozen=True):
    """What was found: the cluster and how much of each kind a site has, or all that is wrong."""

    cluster: str | None
    entities: dict[str, int]
    errors: list[SiteFault]


@click.group(cls=Words)
def site() -> None:
    """Check site files, without a parent."""


@site.command()
@files_argument
@click.option(
    "--lab", "for_lab", is_flag=True, help="Check it as a lab reads it: {x} and `lab` are known."
)
@entities_option
def check(files: tuple[str, ...], for_lab: bool, output: str) -> int:
    r"""Report all errors in a site's files, with line and column.

    FILE is a path, a folder, or - for standard input. For modules of your own that have settings, a
    process is run to ask which settings are secrets; the site must name those as {secret: NAME}.
    Exits with 1 if there are errors.

    \b
    Examples:
      haptera site check site.yaml
      haptera site check -o json site/
    """
    try:
        found = _read(files, for_lab=for_lab)
    except HapteraError as error:
        _print_wrong(error, output)
        return REFUSED
    counts = Counter(one.entity.kind for one in found.entities)
    if not Format(output).for_people:
        names = [str(one.entity) for one in found.entities]
        print_entities(names, SiteChecked(found.cluster, dict(sorted(counts.items())), []), output)
        return 0
    told = [f"{count} {kind if count == 1 else plural(kind)}" for kind, count in counts.items()]
    say(f"cluster {found.cluster}: {', '.join(told) or 'nothing'}; nothing is wrong")
    return 0


@site.command()
def schema() -> None:
    r"""Write the JSON Schema of site files, for editors.

    Most of them read it where a site file has the line
    `# yaml-language-server: $schema=site.schema.json`.

    \b
    Examples:
      haptera site schema > site.schema.json
      haptera site schema | python3 -m json.tool --compact
    """
    from haptera.site.lint.schema import schema as made

    say(json.dumps(made(), indent=2, ensure_ascii=False))


def plural(kind: str) -> str:
    """What many of a kind are called.

    >>> plural("node"), plural("policy")
    ('nodes', 'policies')
    """
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


def _read(files: tuple[str, ...], *, for_lab: bool) -> Site:
    constants = site_constants(files, OF_A_LAB if for_lab else {})
    found = parse_site(site_files(files), constants)
    check_secrets(found, {one.name: one.settings or () for one in _declared(found)})
    if for_lab:
        nodes = [one for one in found.entities if one.entity.kind == "node"]
        lab_nodes({one.entity.name: one.attributes for one in nodes}, found.lab)
    return found


def _declared(site: Site) -> Iterator[Manifest]:
    """What modules that are given settings declare, as far as that is found out here."""
    given = {entity.entity.name for entity, _ in settings_of(site)}
    yield from (load(name).manifest() for name in site.modules if name in given)
    for one in site.own:
        if one.name in given:
            try:
                yield from described([one])
            except HapteraError as error:
                text = f"which settings of {one.name} are secrets is not known here: {error.what}"
                say(f"warning: {printable(text)}", err=True, fg="yellow")


def _print_wrong(error: HapteraError, output: str) -> None:
    if Format(output).for_people or Format(output) is Format.NAME:
        print_error(error)
        return
    print_data(SiteChecked(None, {}, [*map(fault, each(error))]), output)
