"""`haptera image`: images built by the parent from recipes, shown, and removed."""

from pathlib import Path
from typing import Final

import click

from haptera.cli.commands.inspect.wait import within_option
from haptera.cli.main import NOT_CONVERGED, OK, REFUSED, the_client
from haptera.cli.output.printing import (
    Format,
    names_option,
    output_option,
    print_data,
    print_error,
    print_names,
)
from haptera.cli.output.tables import print_table
from haptera.cli.output.words import details, sentence
from haptera.client import Client, calls
from haptera.kinds import image as kind
from haptera.kinds.image import State
from haptera.model.answers.views import Condition, EntityView
from haptera.model.entity import EntityId, check_name
from haptera.model.errors import Code, HapteraError
from haptera.model.walltime import parse_duration_ms

_MS_PER_S: Final = 1_000
_UNDER_WAY: Final = f"{{}} and condition in ({Condition.ACTING},{Condition.WAITING})"
_take_option = click.option("--take", is_flag=True, help="Take over values of other owners.")
_why_option = click.option("-m", "--why", metavar="TEXT", help="Why, for the history.")
_name_argument = click.argument("name")


@click.group("image")
def image() -> None:
    """Build images from recipes; list, show and remove them."""


@image.command()
@_name_argument
@click.argument("recipe", metavar="DIR", type=click.Path(path_type=Path))
@_take_option
@_why_option
@within_option
@click.pass_context
def build(
    ctx: click.Context, name: str, recipe: Path, take: bool, why: str | None, within: str
) -> int:
    r"""Build the image NAME from the Dockerfile in DIR, a directory on the parent's machine.

    The image is desired from now on, in your name. A folder that was built before is not built
    again: use a new name after a change.

    \b
    Examples:
      haptera image build debian-a images/a
      haptera image build debian-a images/a --timeout 30m -m "with the new kernel's headers"
    """
    values = {kind.state.name: State.BUILT.value, kind.recipe.name: str(recipe.resolve())}
    client, entity = the_client(ctx), _entity(name)
    client.ask(calls.desire(entity, values, take=take, why=why))
    return _awaited(client, entity, State.BUILT, within)


@image.command("list")
@names_option
@click.pass_context
def list_images(ctx: click.Context, output: str) -> None:
    r"""List images: the condition of each, and its recipe.

    \b
    Examples:
      haptera image list
      haptera image list -o json
    """
    every = the_client(ctx).ask(calls.entities(kind=kind.kind.name)).entities
    views = [one for one in every if not _is_removed(one)]
    if not Format(output).for_people:
        print_names([one.name for one in views], views, output)
        return
    rows = [(one.name, _state(one), _noted(one), _recipe(one)) for one in views]
    none = "there is no image: haptera image build NAME DIR makes one"
    print_table(("IMAGE", "STATE", "DIGEST, SIZE", "RECIPE"), rows, output, none=none)


@image.command()
@_name_argument
@output_option
@click.pass_context
def show(ctx: click.Context, name: str, output: str) -> None:
    r"""Show one image: digest, size, and the systems that use it.

    \b
    Examples:
      haptera image show debian-a
      haptera image show debian-a -o json
    """
    client = the_client(ctx)
    view = client.ask(calls.entity(_entity(name)))
    if not Format(output).for_people:
        print_data(view, output)
        return
    click.echo(sentence(view))
    for line in details(view):
        click.echo(f"  {line}")
    if noted := _noted(view):
        click.echo(f"  {noted}")
    for one in client.ask(calls.entities(f"system:* and desired.image={name}")).entities:
        click.echo(f"  for {one.entity}")


@image.command()
@_name_argument
@_take_option
@_why_option
@within_option
@click.pass_context
def rm(ctx: click.Context, name: str, take: bool, why: str | None, within: str) -> int:
    r"""Remove the image NAME, and its artefact if no other name uses it.

    Systems that run it continue; a node that boots cannot fetch it any more.

    \b
    Examples:
      haptera image rm debian-a
      haptera image rm debian-a --take -m "superseded"
    """
    client, entity = the_client(ctx), _entity(name)
    client.ask(calls.entity(entity))  # What is not there is not begun by this.
    values = {kind.state.name: State.ABSENT.value, kind.recipe.name: None}
    client.ask(calls.desire(entity, values, take=take, why=why))
    return _awaited(client, entity, State.ABSENT, within)


def _awaited(client: Client, entity: str, state: State, within: str) -> int:
    """Wait until it is so, or is known not to come; an exit code."""
    from haptera.cli.output.live.waiting import wait_until_none  # only here: it brings asyncio

    within_s = parse_duration_ms(within) / _MS_PER_S
    left = wait_until_none(client.access, entity, _UNDER_WAY.format(entity), within_s)
    view = client.ask(calls.entity(entity))
    if view.condition is Condition.CONVERGED:
        noted = _noted(view)
        click.echo(f"{entity} is {state}" + (f": {noted}" if noted else ""))
        return OK
    do = f"haptera logs {entity}" if state is State.BUILT else f"haptera why {entity}"
    print_error(
        HapteraError(
            view.why or f"it is {view.condition}", where=entity, do=do, code=Code.NOT_CONVERGED
        )
    )
    return NOT_CONVERGED if left else REFUSED


def _is_removed(view: EntityView) -> bool:
    """Whether it is not there, as it should not be."""
    desired = view.desired.get(kind.state.name)
    return desired is not None and desired.value == _state(view) == State.ABSENT


def _entity(name: str) -> str:
    return str(EntityId(kind.kind.name, check_name(name), None))


def _state(view: EntityView) -> str:
    fact = view.observed.get(kind.state.name)
    return view.condition.value if fact is None else fact.value


def _noted(view: EntityView) -> str:
    """Digest and size, as they were seen last."""
    fact = view.observed.get(kind.state.name)
    return "" if fact is None or fact.note is None else fact.note


def _recipe(view: EntityView) -> str:
    desired = view.desired.get(kind.recipe.name)
    return "" if desired is None else str(desired.value)
