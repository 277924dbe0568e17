"""`haptera audit verify`: whether the record of who wrote what is as it was written."""

import re
from pathlib import Path
from typing import Final

import click

from haptera.cli.input.directory import dir_option
from haptera.cli.lazy import Words
from haptera.cli.output.printing import say
from haptera.cli.verb import unwatched

_HASH: Final = re.compile(r"[0-9A-Fa-f]{64}")


@click.group(cls=Words)
def audit() -> None:
    """Check the record of who wrote what (`haptera history --audit` shows it)."""


@audit.command()
@unwatched("it reads local files, for which there are no events: run it again")
@dir_option
@click.option("--noted", metavar="HASH", help="A hash printed earlier; the chain must contain it.")
def verify(directory: Path, noted: str | None) -> int:
    r"""Verify the hash chain over the audit records in a parent's state file.

    Each write and each deed has a link, whose hash is over the link before. What was altered,
    removed or added is named. Note the hash that is printed elsewhere: with --noted it is found too
    if the whole chain was made anew. Links go with what they stand for, after 400 days.

    \b
    Examples:
      haptera audit verify --dir /srv/cluster
      haptera audit verify --noted 3f0c9a...
    """
    from haptera.daemon.parent.backup import state_of
    from haptera.runtime.store.audit_chain import verify as compare

    if noted is not None and _HASH.fullmatch(noted) is None:
        raise click.BadParameter(f"{noted!r} is not a hash of 64 digits", param_hint="--noted")
    found = compare(state_of(directory), noted)
    for finding in found.findings:
        say(finding)
    last, sha256 = found.head
    older = f", {found.forgotten} older ones forgotten" if found.forgotten else ""
    links = f"{found.links} link{'' if found.links == 1 else 's'}"
    say(f"{links}{older}; the last is {last}: {sha256}")
    return 1 if found.findings else 0
