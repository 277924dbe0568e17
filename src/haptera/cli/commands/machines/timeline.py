"""`haptera roll timeline`: the course of a roll, from the record of the parent."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import click

from haptera.cli.input.recorded import recorded_roll
from haptera.cli.main import the_client
from haptera.cli.output.drawing.roll_picture import roll_picture
from haptera.cli.output.printing import Format, print_data, print_document
from haptera.cli.output.tables import print_table
from haptera.cli.output.words import printable
from haptera.cli.verb import answers, unwatched
from haptera.controllers.roll.timeline import RollTimeline
from haptera.kinds import roll
from haptera.model.entity import check_name
from haptera.model.walltime import duration, utc_text_s

_HEADERS: Final = ("SYSTEM", "FROM", "FOR", "PHASE", "WHY")
_MS_PER_S: Final = 1_000


class TimelineForm(StrEnum):
    TABLE = "table"
    SVG = "svg"
    JSON = "json"


@click.command("timeline")
@answers(RollTimeline)
@unwatched("`haptera roll status --watch` shows the progress of rolls")
@click.argument("name", metavar="ROLL")
@click.option(
    "-o",
    "--output",
    type=click.Choice([one.value for one in TimelineForm]),
    default=TimelineForm.TABLE.value,
    show_default=True,
    help="As a table, as a picture, or as JSON.",
)
@click.pass_context
def timeline_command(ctx: click.Context, name: str, output: str) -> None:
    r"""Show what each system of a roll did and waited for, and for how long.

    It is read from the history (docs/reference/history.md), and so remains after the roll.

    \b
    Examples:
      haptera roll timeline debian-b
      haptera roll timeline debian-b -o svg > roll.svg
    """
    _, told = recorded_roll(the_client(ctx), check_name(name))
    match TimelineForm(output):
        case TimelineForm.TABLE:
            print_table(_HEADERS, [*_rows(told)], output)
        case TimelineForm.SVG:
            print_document(roll_picture(told))
        case TimelineForm.JSON:
            print_data(told, Format.JSON)


def _rows(told: RollTimeline) -> Iterator[tuple[str, ...]]:
    for lane in told.lanes:
        for span in lane.spans:
            lasts = duration(round((span.to_s - span.from_s) * _MS_PER_S))
            from_s = utc_text_s(int(span.from_s))
            yield lane.entity, from_s, lasts, span.phase, printable(span.why or "")
    for mark in told.marks:
        yield f"{roll.kind.name}:{told.name}", utc_text_s(int(mark.at_s)), "", "", mark.text
