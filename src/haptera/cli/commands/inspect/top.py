"""`haptera top`: the nodes with the worst health or the highest numbers, as a live table."""

import contextlib
import select
from collections.abc import Iterator, Sequence
from typing import Final

import click

from haptera.cli.input import completing
from haptera.cli.main import the_client
from haptera.cli.output.printing import Format, entities_option, is_terminal, print_entities
from haptera.cli.output.samples import number_text
from haptera.cli.output.tables import print_table
from haptera.cli.verb import answers, unwatched
from haptera.client import Client, calls, sample_calls
from haptera.health.rule import Grade
from haptera.kinds import health, node
from haptera.model.entity import node_id
from haptera.rest.query import RANKED_MAX
from haptera.rest.samples import EntitySamples
from haptera.selectors.selector import fold_entities, parse_selector

ROWS: Final = 20
# The series that are shown where none is named, as far as they are measured.
SHOWN: Final = (
    "temp.inlet",
    "bmc.temp.inlet",
    "memory.used_percent",
    "psi.cpu_some",
    "psi.memory_full",
    "psi.io_full",
)
# Numbers have no events: each is measured anew every ten seconds or so.
REDRAWN_EVERY_S: Final = 2.0
_WORST_FIRST: Final = tuple(reversed(Grade))


@click.command()
@answers(list[EntitySamples])
@unwatched("on a terminal its table is live")
@click.argument("selector", required=False, shell_complete=completing.selectors)
@click.option(
    "--by", metavar="SERIES", help="Order by this number, as temp.inlet; default: health."
)
@click.option("--lowest", is_flag=True, help="With --by: the lowest first.")
@click.option(
    "--show", "shown", metavar="SERIES", multiple=True, help="Show these numbers besides."
)
@click.option("-n", "--limit", type=click.IntRange(1, RANKED_MAX), default=ROWS, show_default=True)
@click.option("--once", is_flag=True, help="Print the table once, on a terminal too.")
@entities_option
@click.pass_context
def top(  # noqa: PLR0913 (an argument for each option)
    ctx: click.Context,
    selector: str | None,
    by: str | None,
    lowest: bool,
    shown: tuple[str, ...],
    limit: int,
    once: bool,
    output: str,
) -> None:
    r"""Show the nodes with the worst health, or the highest numbers of a series.

    On a terminal the table is drawn again every two seconds, until Ctrl-C. Without --by, nodes that
    no health rule speaks of are left out.

    \b
    Examples:
      haptera top
      haptera top --by temp.inlet -n 10
      haptera top 'rack1*' --by fan.speed[fan1] --lowest --show temp.cpu[package0]
    """
    if lowest and by is None:
        raise click.UsageError("--lowest is an order of --by SERIES: name one")
    if selector is not None:
        parse_selector(selector)
    client = the_client(ctx)
    meant = f"{node.kind.name}:*" if selector is None else f"({selector}) and {node.kind.name}:*"
    ranking = _Ranking(client, meant, by, lowest=lowest, limit=limit)
    if not Format(output).for_people:
        found, _ = ranking.now()
        print_entities([one.entity for one in found], found, output)
        return
    names = tuple(dict.fromkeys([*([by] if by else []), *(shown or SHOWN)]))
    none = "no health rule speaks of any of them: order by a number with --by SERIES"
    if by is not None:
        none = f"no {by} was measured of any of them in the last two minutes"
    _show(ranking, names, output, none)
    if is_terminal() and not once:
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                select.select((), (), (), REDRAWN_EVERY_S)
                click.clear()
                _show(ranking, names, output, none)


class _Ranking:
    """The nodes that come first; asked of the parent anew, which sends no others."""

    def __init__(
        self, client: Client, meant: str, by: str | None, *, lowest: bool, limit: int
    ) -> None:
        self._client, self._meant, self._by = client, meant, by
        self._order = {"lowest" if lowest else "highest": limit}
        self._limit = limit

    def now(self) -> tuple[list[EntitySamples], dict[str, Grade]]:
        """Their numbers, in order, and the grade of each that a health rule speaks of."""
        grades = self._grades()
        names = self._by_health(grades) if self._by is None else self._by_number(self._by)
        if not names:
            return [], grades
        meant = fold_entities(map(node_id, names))
        found = {one.entity: one for one in self._client.ask(sample_calls.samples(meant)).entities}
        entities = [str(node_id(name)) for name in names]
        return [found.get(one, EntitySamples(one, {})) for one in entities], grades

    def _by_number(self, series: str) -> list[str]:
        asked = sample_calls.samples(self._meant, series=series, **self._order)
        return [_name(one.entity) for one in self._client.ask(asked).entities]

    def _by_health(self, grades: dict[str, Grade]) -> list[str]:
        if not grades:
            return []
        graded = fold_entities(map(node_id, grades))
        meant = self._client.ask(calls.entities(f"({self._meant}) and ({graded})")).entities
        names = (one.name for one in meant)
        return sorted(names, key=lambda one: (_WORST_FIRST.index(grades[one]), one))[: self._limit]

    def _grades(self) -> dict[str, Grade]:
        """By node: only nodes that a rule speaks of have one."""
        views = self._client.ask(calls.entities(kind=health.kind.name)).entities
        graded = ((one.name, one.desired_value(health.grade.name)) for one in views)
        return {name: Grade(str(grade)) for name, grade in graded if grade in {*Grade}}


def _show(ranking: _Ranking, names: Sequence[str], output: str, none: str) -> None:
    found, grades = ranking.now()
    measured = [one for one in names if any(one in each.series for each in found)]
    headers = ("NODE", "HEALTH", *(one.upper() for one in measured))
    print_table(headers, [*_rows(found, grades, measured)], output, none=none)


def _rows(
    found: Sequence[EntitySamples], grades: dict[str, Grade], names: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    for one in found:
        name = _name(one.entity)
        numbers = (one.series.get(series) for series in names)
        cells = ("-" if it is None else number_text(it.value, it.unit) for it in numbers)
        yield name, grades.get(name, "-"), *cells


def _name(entity: str) -> str:
    return entity.partition(":")[2]
