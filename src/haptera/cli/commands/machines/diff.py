"""`haptera image diff`: in what two images differ."""

from collections.abc import Iterator
from typing import Final

import click

from haptera.cli.main import OK, REFUSED, the_client
from haptera.cli.output.printing import Format, output_option, print_data, say
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.kinds.inventory import FileSort, ImageFile
from haptera.modules.image.difference import Aspect, FileChange, ImageDifference, difference

DIFFERS: Final = REFUSED
_MB: Final = 1_000_000


@click.command()
@answers(ImageDifference)
@unwatched("an image that was built does not change")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@output_option
@click.pass_context
def diff(ctx: click.Context, before: str, after: str, output: str) -> int:
    r"""Compare two images, each by its name or digest: what is in B and not in A, and the reverse.

    Packages are compared by version; files by content, mode and owner, but not by time. Lines with
    + are only in B, lines with - only in A, lines with ~ in both.

    Exit codes: 0 no difference, 1 differences.

    \b
    Examples:
      haptera image diff debian-a debian-b
      haptera image diff debian-a debian-b -o json
    """
    client = the_client(ctx)
    found = difference(client.ask(calls.inventory(before)), client.ask(calls.inventory(after)))
    if Format(output).for_people:
        for line in _lines(found):
            say(line)
    else:
        print_data(found, output)
    return DIFFERS if any((found.packages, found.added, found.removed, found.changed)) else OK


def _lines(found: ImageDifference) -> Iterator[str]:
    for one in found.packages:
        yield f"{_sign(one.before, one.after)} {one.name} {_versions(one.before, one.after)}"
    for sign, files in (("+", found.added), ("-", found.removed)):
        yield from (f"{sign} {_shown(one)}" for one in files)
    yield from (f"~ {_change(one)}" for one in found.changed)
    yield (
        f"{len(found.packages)} packages; files: {len(found.added)} added,"
        f" {len(found.removed)} removed, {len(found.changed)} changed;"
        f" {found.size_bytes / _MB:+.1f} MB before compression"
    )


def _sign(before: str | None, after: str | None) -> str:
    if before is None:
        return "+"
    return "-" if after is None else "~"


def _versions(before: str | None, after: str | None) -> str:
    return " -> ".join(one for one in (before, after) if one is not None)


def _shown(one: ImageFile) -> str:
    if one.sort is FileSort.FILE:
        return f"{_path(one)} ({one.size_bytes} bytes)"
    return f"{_path(one)} ({one.sort})"


def _change(one: FileChange) -> str:
    before, after = one.before, one.after
    told = {
        Aspect.SORT: f"{before.sort} -> {after.sort}",
        Aspect.CONTENT: f"{before.size_bytes} -> {after.size_bytes} bytes"
        if before.sort is FileSort.FILE
        else f"{before.content} -> {after.content}",
        Aspect.MODE: f"mode {before.mode:o} -> {after.mode:o}",
        Aspect.OWNER: f"owner {before.uid}:{before.gid} -> {after.uid}:{after.gid}",
    }
    return f"{_path(after)} ({', '.join(told[aspect] for aspect in one.aspects)})"


def _path(one: ImageFile) -> str:
    """As it is, but for what a terminal would carry out."""
    return one.path if one.path.isprintable() else repr(one.path)[1:-1]
