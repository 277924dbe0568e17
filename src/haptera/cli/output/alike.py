"""How entities are, as a table: those that are alike in one line, their nodes folded."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from haptera.cli.output.tables import print_table
from haptera.cli.output.words import COLOURS, standing
from haptera.model.entity import parse_entity
from haptera.model.walltime import duration
from haptera.selectors.selector import fold_entities

_COLOURS = {
    standing(condition, frozen): colour
    for condition, colour in COLOURS.items()
    for frozen in (None, "frozen")
}


@dataclass(frozen=True, slots=True)
class ToldEntity:
    """The state of an entity in words: where it stands, for how long if known, and more."""

    entity: str
    condition: str
    since_ms: int | None
    more: tuple[str, ...]


def print_alike(
    headers: Sequence[str], told: Iterable[ToldEntity], output: str, *, none: str | None = None
) -> None:
    """Write a line for all that stand alike in one condition, whichever nodes they are on.

    What `none` says is written on stderr where there is nothing to show.
    """
    alike: dict[object, list[ToldEntity]] = {}
    for one in told:
        alike.setdefault((parse_entity(one.entity).title, one.condition, one.more), []).append(one)
    colours = [_COLOURS.get(one.condition) for one, *_ in alike.values()]
    print_table(headers, [_row(some) for some in alike.values()], output, colours, none=none)


def _row(some: Collection[ToldEntity]) -> tuple[str, ...]:
    """One line; of the times that they stand so, the shortest and the longest."""
    one = next(iter(some))
    times = sorted(other.since_ms for other in some if other.since_ms is not None)
    since = dict.fromkeys(duration(ms) for ms in (*times[:1], *times[-1:]))
    names = fold_entities(parse_entity(other.entity) for other in some)
    return (names, one.condition, *([" to ".join(since)] if times else []), *one.more)
