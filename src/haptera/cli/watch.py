"""`haptera watch`: each change as it comes, until Ctrl-C."""

import asyncio
from contextlib import aclosing

import click
import msgspec

from haptera.api.shapes import Event
from haptera.cli import completing
from haptera.cli.main import the_access
from haptera.cli.printing import Format, print_error
from haptera.cli.words import COLOURS, printable, values
from haptera.client import Access, AsyncClient, Broken, Call, calls
from haptera.model.news import News
from haptera.model.selector import parse_selector
from haptera.model.views import EntityView


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Choice([Format.TABLE.value, Format.JSON.value]),
    default=Format.TABLE.value,
    help="Lines for people, or one JSON document a line.",
)
@click.option(
    "--type",
    "types",
    type=click.Choice([one.value for one in News]),
    multiple=True,
    help="Only changes of this type; may be given again.",
)
@click.argument("selector", required=False, shell_complete=completing.selectors)
@click.pass_context
def watch(ctx: click.Context, selector: str | None, types: tuple[str, ...], output: str) -> None:
    r"""Write a line for every change of what SELECTOR names (all, without one), until Ctrl-C.

    A SELECTOR is rack1n[1-4] (nodes, and what is on them), service:web@rack1n1, condition=stuck, ….
    What comes to be selected is told, and what no longer is has left.

    \b
    Examples:
      haptera watch rack1n[1-4]
      haptera watch --type condition -o json
    """
    access = the_access(ctx)
    select = None if selector is None else parse_selector(selector).text
    call = calls.events(select, types=[News(one) for one in types] or None)
    try:
        asyncio.run(_watch(access, call, Format(output)))
    except KeyboardInterrupt:
        return


async def _watch(access: Access, call: Call[Event], output: Format) -> None:
    lines: dict[str, str] = {}
    told: str | None = None
    async with aclosing(AsyncClient(access).follow(call)) as stream:
        async for news in stream:
            if isinstance(news, Broken):
                # Tried again and again, told once.
                if told != str(news.error):
                    told = str(news.error)
                    print_error(news.error)
                continue
            told = None
            for view in news.event.entities:
                line = _line(view)
                # What only grew older is no news.
                if lines.get(view.entity) != line:
                    lines[view.entity] = line
                    _print(view, line, output)
            for word, entities in (("gone", news.event.gone), ("left", news.event.left)):
                for entity in entities:
                    if lines.pop(entity, None) is not None:
                        click.echo(_not_there(entity, word, output))


def _line(view: EntityView) -> str:
    part = view.chain[0].part if view.chain else ""
    why = printable(view.why or "")
    told = [values(view), "" if why.startswith(part) else part, why]
    return "  ".join(text for text in told if text)


def _print(view: EntityView, line: str, output: Format) -> None:
    if output is Format.JSON:
        click.echo(msgspec.json.encode(view))
        return
    condition = click.style(f"{view.condition.value:9}", fg=COLOURS[view.condition])
    click.echo(f"{view.entity:24}  {condition}  {line}")


def _not_there(entity: str, word: str, output: Format) -> str:
    """That it is gone, or left what was selected."""
    if output is Format.JSON:
        return msgspec.json.encode({"entity": entity, word: True}).decode()
    return f"{entity:24}  {word}"
