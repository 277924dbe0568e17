"""Conditions of entities, grouped, as a table: of all, or of those that are waited for."""

from collections.abc import Collection, Mapping
from typing import Final

from haptera.cli.output.printing import say
from haptera.cli.output.tables import print_table
from haptera.cli.output.words import COLOURS, in_front, printable, standing
from haptera.model.answers.views import AlikeView, Condition

_HEADERS: Final = ("WHAT", "CONDITION", "COUNT", "ON", "REASON")
_SUBTREES: Final = ("BELOW", "WHAT", "CONDITION", "COUNT")


def print_standing(alike: Collection[AlikeView], output: str) -> None:
    """Write a line for all that stand alike."""
    colours = [COLOURS[one.condition] for one in alike]
    print_table(_HEADERS, [_row(one) for one in alike], output, colours)


def print_subtrees(subtrees: Mapping[str, Mapping[str, Mapping[str, int]]], output: str) -> None:
    """Write, below each parent, how many of each kind stand how; nothing without parents below."""
    rows = [
        (parent, kind, standing(Condition(condition), None), str(count))
        for parent, kinds in subtrees.items()
        for kind, conditions in kinds.items()
        for condition, count in conditions.items()
        if in_front(kind, Condition(condition))
    ]
    if rows:
        say()
        print_table(_SUBTREES, rows, output)


def _row(one: AlikeView) -> tuple[str, ...]:
    title = one.kind if one.name is None else f"{one.kind} {one.name}"
    condition = standing(one.condition, one.frozen)
    return title, condition, str(one.count), one.on, printable(one.why or one.frozen or "")
