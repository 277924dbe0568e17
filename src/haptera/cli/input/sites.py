"""The files of a site as a command names them: read here, and sent with what templates know."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from haptera.cli.input import completing
from haptera.model.errors import HapteraError
from haptera.rest.schemas import SiteBody, SiteFile
from haptera.site.syntax.sources import constants_of, from_standard_input, gather
from haptera.site.syntax.template import LAB_OCTET

_STANDARD_INPUT: Final = "-"

# What only a lab knows, until one does.
OF_A_LAB: Final[Mapping[str, str]] = {LAB_OCTET: "1"}

files_argument = click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, shell_complete=completing.files
)


def site_files(names: Sequence[str]) -> list[SiteFile]:
    """The files named, those of folders, and what they include; - is standard input.

    Raises:
        HapteraError: one cannot be read.
    """
    if _STANDARD_INPUT not in names:
        return [*gather([Path(name) for name in names])]
    if len(names) > 1:
        raise HapteraError("- cannot be combined with files", where="-", do="name files only, or -")
    return [from_standard_input()]


def site_constants(names: Sequence[str], own: Mapping[str, str]) -> dict[str, str]:
    """What templates know: `python`, `site` (the first file's folder), and a client's own."""
    first = Path.cwd() if names[0] == _STANDARD_INPUT else Path(names[0])
    return {**constants_of(first), **own}


def site_body(names: Sequence[str], own: Mapping[str, str]) -> SiteBody:
    """What is sent of a site.

    Raises:
        HapteraError: a file cannot be read.
    """
    return SiteBody(site_files(names), site_constants(names, own))
