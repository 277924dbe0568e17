"""How entities stand, told together, as a table: of all, or of those that are waited for."""

from collections.abc import Collection
from typing import Final

from haptera.cli.output.tables import print_table
from haptera.cli.output.words import COLOURS, printable, standing
from haptera.model.views import AlikeView

_HEADERS: Final = ("WHAT", "CONDITION", "COUNT", "ON", "REASON")


def print_standing(alike: Collection[AlikeView], output: str) -> None:
    """Write a line for all that stand alike."""
    colours = [COLOURS[one.condition] for one in alike]
    print_table(_HEADERS, [_row(one) for one in alike], output, colours)


def _row(one: AlikeView) -> tuple[str, ...]:
    title = one.kind if one.name is None else f"{one.kind} {one.name}"
    condition = standing(one.condition, one.frozen)
    return title, condition, str(one.count), one.on, printable(one.why or one.frozen or "")
