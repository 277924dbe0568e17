"""`haptera graph`: all that can be known of a class and what leads where, drawn."""

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import islice
from typing import Final

import click
import msgspec

from haptera.cli.input import completing
from haptera.cli.input.authored import brought_manifests
from haptera.cli.input.naming import entity_named
from haptera.cli.main import the_client
from haptera.cli.output.drawing.dot import dot
from haptera.cli.output.drawing.mermaid import mermaid
from haptera.cli.output.drawing.svg import svg
from haptera.cli.output.printing import print_document, say
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.daemon.parts import catalog_of
from haptera.kinds import KINDS
from haptera.model.answers.graph import DrawingView
from haptera.model.declared.desired_check import nearest
from haptera.model.entity import parse_entity
from haptera.model.errors import DuplicateError, HapteraError, UnknownNameError
from haptera.model.parts import Part
from haptera.modules import BUNDLED
from haptera.planner.domain.domain import compile_class
from haptera.planner.domain.problem import problem_of
from haptera.planner.explain.drawing import drawing
from haptera.planner.explain.graph import graphs_of
from haptera.planner.explain.problem_line import draw_line
from haptera.planner.problem_file import opened, problems

PLACE: Final = "--class"


class GraphForm(StrEnum):
    DOT = "dot"
    JSON = "json"
    MERMAID = "mermaid"
    SVG = "svg"


@click.command()
@answers(DrawingView)
@unwatched("a drawing is a snapshot; `haptera chain --watch ENTITY` shows the steps left")
@click.argument("kind", required=False)
@click.option(
    "--class",
    "classes",
    metavar="ATTR=VALUE,…",
    multiple=True,
    help="The attributes that select the parts; default: the only values that parts require.",
)
@click.option(
    "--entity",
    metavar="ENTITY",
    shell_complete=completing.entities,
    help="Mark the goal and the chain of this entity.",
)
@click.option("--problem", metavar="FILE", help="Draw a planning problem: a JSON file, or -.")
@click.option(
    "-o",
    "--output",
    type=click.Choice([one.value for one in GraphForm]),
    default=GraphForm.DOT.value,
    show_default=True,
    help="As DOT (for Graphviz), as JSON, as Mermaid, or as a picture, which Graphviz makes.",
)
@click.pass_context
def graph(
    ctx: click.Context,
    kind: str | None,
    classes: tuple[str, ...],
    entity: str | None,
    problem: str | None,
    output: str,
) -> None:
    r"""Draw all states that KIND can be in, and the looks and steps between them.

    KIND is drawn as served by haptera's own modules, without a parent. With --entity, the graph is
    what the parent plans with for that entity. Large kinds give several graphs
    (docs/reference/graph.md).

    \b
    Examples:
      haptera graph service -o mermaid > service.mmd
      haptera graph --entity node:rack1n1 -o svg > n1.svg
    """
    if entity is not None and problem is None and not classes:
        told = _of_entity(ctx, entity, kind)
    elif problem is not None and entity is None and kind is None and not classes:
        told = _of_problem(problem)
    elif kind is not None and entity is None and problem is None:
        told = _of_kind(kind, classes)
    else:
        text = "name a kind (and its --class), or an entity (--entity), or a problem (--problem)"
        raise click.UsageError(text)
    match GraphForm(output):
        case GraphForm.DOT:
            print_document(dot(told))
        case GraphForm.MERMAID:
            print_document(mermaid(told))
        case GraphForm.SVG:
            print_document(svg(told))
        case GraphForm.JSON:
            # All of it ASCII: no terminal can fail on it, and no name.
            say(json.dumps(msgspec.to_builtins(told), indent=2))


def _of_entity(ctx: click.Context, entity: str, kind: str | None) -> DrawingView:
    entity = entity_named(entity)
    if kind is not None and parse_entity(entity).kind != kind:
        raise click.UsageError(f"{entity} is no {kind}")
    return the_client(ctx).ask(calls.graph(entity))


def _of_problem(file: str) -> DrawingView:
    where = "standard input" if file == "-" else file
    with opened(file) as stream:
        found = list(islice(problems(stream), 2))
    if len(found) != 1:
        raise HapteraError(
            f"holds {'more than one problem' if found else 'no problem'}",
            where=where,
            do="draw one at a time",
        )
    return draw_line(found[0])


def _of_kind(kind: str, classes: Iterable[str]) -> DrawingView:
    if kind not in KINDS:
        raise UnknownNameError(f"there is no kind {kind!r}", do=nearest(kind, KINDS))
    # A kind that a package brings is served by what packages bring.
    others = [] if kind in KINDS.bundled else brought_manifests()
    parts = catalog_of(BUNDLED, others).parts()
    mine = [part for part in parts if part.kind == kind]
    if not mine:
        served = {part.kind for part in parts}
        raise HapteraError(
            f"no module serves a {kind}",
            do=f"draw one of {', '.join(sorted(served))}",
        )
    attributes = _completed(kind, mine, _given(kind, classes))
    domain = compile_class(problem_of(KINDS[kind], mine, attributes))
    return drawing(domain, graphs_of(domain), kind)


def _given(kind: str, classes: Iterable[str]) -> dict[str, str]:
    """The attributes of a class as they were typed."""
    names = problem_of(KINDS[kind], (), {}).attributes
    given: dict[str, str] = {}
    for item in (item for text in classes for item in text.split(",")):
        name, _, value = item.partition("=")
        if not value:
            advice = "write ATTR=VALUE, as platform=labnode"
            raise HapteraError(f"{item!r} gives no value", where=PLACE, do=advice)
        if name not in names:
            what = f"a {kind} has no attribute {name!r}"
            raise UnknownNameError(what, where=PLACE, do=nearest(name, names))
        if given.setdefault(name, value) != value:
            raise DuplicateError(f"gives {name} twice", where=PLACE, do="draw one class at a time")
    return given


def _completed(kind: str, parts: Iterable[Part], given: Mapping[str, str]) -> dict[str, str]:
    """The class; where none is given, the attributes that parts require to have one value."""
    asked: dict[str, set[str]] = {}
    for one in (one for part in parts for one in part.requires):
        asked.setdefault(one.name, set()).update(one.values)
    found = dict(given)
    for name in problem_of(KINDS[kind], (), {}).attributes:
        values = sorted(asked.get(name, ()))
        if values and name in given and given[name] not in values:
            text = f"no part requires {name}={given[name]}: {nearest(given[name], values)}"
            say(f"warning: {text}", err=True, fg="yellow")
        if name not in given and len(values) > 1:
            raise HapteraError(
                f"which parts a {kind} has depends on its {name}",
                where=PLACE,
                do=f"name one, as {name}={values[0]}; there are {', '.join(values)}",
            )
        if not given and values:
            found[name] = values[0]
    return found
