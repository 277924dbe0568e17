"""`haptera image`: images that the parent builds or imports, shown, and removed."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from haptera.cli.commands.inspect.wait import within_option
from haptera.cli.commands.machines.diff import diff
from haptera.cli.input.terms import why_option
from haptera.cli.main import NOT_CONVERGED, OK, REFUSED, the_client
from haptera.cli.output.printing import (
    Format,
    names_option,
    output_option,
    print_data,
    print_error,
    print_names,
    say,
)
from haptera.cli.output.tables import print_table
from haptera.cli.output.words import details, sentence
from haptera.cli.verb import answers, unwatched
from haptera.client import Client, calls
from haptera.kinds import image as kind
from haptera.kinds import roll, system
from haptera.kinds.image import LOCAL, REMOTE, State
from haptera.model.answers.views import Condition, EntityView
from haptera.model.entity import EntityId, check_name
from haptera.model.errors import Code, HapteraError
from haptera.model.walltime import parse_duration_ms
from haptera.queue.job import JobState
from haptera.rest.jobs import JOBS_MAX

_MS_PER_S: Final = 1_000
_UNDER_WAY: Final = f"{{}} and condition in ({Condition.ACTING},{Condition.WAITING})"
_take_option = click.option("--take", is_flag=True, help="Take over values of other owners.")
_name_argument = click.argument("name")
_SIZE: Final = re.compile(r"([0-9.]+) MB\Z")
# How the owner of what a user desires begins.
_BY_USER: Final = "user:"
# So many who use an image are named in an error.
_NAMED_MAX: Final = 3
# What stands in whose desired state by an image's name or digest.
_REFERENCES: Final = ((system.kind, (system.image, system.spare)), (roll.kind, (roll.image,)))


@click.group("image")
def image() -> None:
    """Build images from recipes, or import them; list, show, compare and remove them."""


image.add_command(diff)


@image.command()
@unwatched("it runs once; `haptera status --watch` shows the result")
@_name_argument
@click.argument("recipe", metavar="DIR", type=click.Path(path_type=Path))
@_take_option
@why_option
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
      haptera image build debian-a images/a --within 30m -m "with the new kernel's headers"
    """
    made_of = {kind.recipe.name: str(recipe.resolve()), kind.source.name: None}
    return _made(the_client(ctx), _entity(name), made_of, take, why, within)


@image.command("import")
@unwatched("it runs once; `haptera status --watch` shows the result")
@_name_argument
@click.argument("source")
@_take_option
@why_option
@within_option
@click.pass_context
def import_image(
    ctx: click.Context, name: str, source: str, take: bool, why: str | None, within: str
) -> int:
    r"""Import the image NAME from SOURCE: a registry, or a place on the parent's machine.

    SOURCE is docker://IMAGE, oci:DIR[:TAG], oci-archive:FILE, docker-archive:FILE, or the path of a
    tarball, a directory or a squashfs with a root whose init is /sbin/init.

    \b
    Examples:
      haptera image import rocky docker://docker.io/library/rockylinux:9
      haptera image import debian-c oci:build/layout:latest
      haptera image import debian-d /srv/roots/debian.tar.gz
    """
    made_of = {kind.recipe.name: None, kind.source.name: _resolved(source)}
    return _made(the_client(ctx), _entity(name), made_of, take, why, within)


@image.command("list")
@answers(list[EntityView])
@unwatched("`haptera get --watch image:NAME` shows one")
@names_option
@click.pass_context
def list_images(ctx: click.Context, output: str) -> None:
    r"""List images: the condition of each, and what it is made of.

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
    none = "there is no image: `haptera image build NAME DIR` makes one"
    print_table(("IMAGE", "STATE", "DIGEST, SIZE", "MADE OF"), rows, output, none=none)


@image.command()
@answers(EntityView)
@unwatched("`haptera get --watch image:NAME` shows one")
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
    say(sentence(view))
    for line in details(view):
        say(f"  {line}")
    if noted := _noted(view):
        say(f"  {noted}")
    for one in client.ask(calls.entities(f"system:* and desired.image={name}")).entities:
        say(f"  for {one.entity}")


@image.command()
@unwatched("it runs once; `haptera status --watch` shows the result")
@_name_argument
@_take_option
@why_option
@within_option
@click.pass_context
def rm(ctx: click.Context, name: str, take: bool, why: str | None, within: str) -> int:
    r"""Remove the image NAME, and its artefact if no other name uses it.

    An image that a system, a roll or a waiting job uses is not removed: nodes could not fetch it.

    \b
    Examples:
      haptera image rm debian-a
      haptera image rm debian-a --take -m "superseded"
    """
    client, entity = the_client(ctx), _entity(name)
    view = client.ask(calls.entity(entity))  # What is not there is not begun by this.
    if users := _users(view, _references(client)):
        more = f" and {len(users) - _NAMED_MAX} more" if len(users) > _NAMED_MAX else ""
        raise HapteraError(
            f"used by {', '.join(users[:_NAMED_MAX])}{more}",
            where=entity,
            do="set another image for these, or cancel jobs; a roll that is over:"
            " haptera roll rm NAME",
            code=Code.CONFLICT,
        )
    return _remove(client, entity, take, why, within)


@image.command()
@unwatched("it runs once; `haptera status --watch` shows the result")
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and remove nothing.")
@_take_option
@why_option
@within_option
@click.pass_context
def gc(ctx: click.Context, dry_run: bool, take: bool, why: str | None, within: str) -> int:
    r"""Remove all images that no system, no roll and no waiting job uses.

    Images that a site file declares are left: remove them there.

    \b
    Examples:
      haptera image gc --dry-run
      haptera image gc
    """
    client = the_client(ctx)
    # Images first: one that begins to be used after that is seen to be.
    views = client.ask(calls.entities(kind=kind.kind.name)).entities
    references = _references(client)
    unused = [one for one in views if _is_a_users(one) and not _users(one, references)]
    code = OK
    for one in unused:
        if dry_run:
            say(f"{one.entity} would be removed: {_noted(one) or one.condition.value}")
        else:
            code = max(code, _remove(client, one.entity, take, why, within))
    if dry_run and unused:
        say(f"{sum(map(_megabytes, unused)):.1f} MB would be freed")
    if not unused:
        say("every image is used, or declared by a site file")
    return code


def _made(
    client: Client,
    entity: str,
    made_of: Mapping[str, str | None],
    take: bool,
    why: str | None,
    within: str,
) -> int:
    values = {kind.state.name: State.BUILT.value, **made_of}
    client.ask(calls.desire(entity, values, take=take, why=why))
    return _awaited(client, entity, State.BUILT, within)


def _resolved(source: str) -> str:
    """The source with a whole path, for the parent has a folder of its own."""
    transport, colon, rest = source.partition(":")
    if colon and transport == REMOTE:
        return source
    if colon and transport in LOCAL:
        path, *tag = rest.split(":", 1)
        return ":".join((transport, str(Path(path).resolve()), *tag))
    return str(Path(source).resolve())


def _remove(client: Client, entity: str, take: bool, why: str | None, within: str) -> int:
    made_of = (kind.recipe.name, kind.source.name)
    values = {kind.state.name: State.ABSENT.value, **dict.fromkeys(made_of)}
    client.ask(calls.desire(entity, values, take=take, why=why))
    return _awaited(client, entity, State.ABSENT, within)


def _megabytes(view: EntityView) -> float:
    """Its size, as it was seen last."""
    size = _SIZE.search(_noted(view))
    return 0.0 if size is None else float(size[1])


def _references(client: Client) -> Mapping[str, Sequence[str]]:
    """Who uses which image, as they name it: by its name, or its digest."""
    found: dict[str, list[str]] = {}
    for users, by in _REFERENCES:
        for view in client.ask(calls.entities(kind=users.name)).entities:
            named = {str(view.desired[one.name].value) for one in by if one.name in view.desired}
            for reference in sorted(named):
                found.setdefault(reference, []).append(view.entity)
    # Those that run have it already.
    for lane in client.ask(calls.queue()).lanes:
        if lane.image is not None:
            found.setdefault(lane.image, []).append(f"waiting jobs ({lane.waiting})")
    for job in client.ask(calls.jobs(JobState.LOCKED, limit=JOBS_MAX)).jobs:
        if job.spec.image is not None:
            found.setdefault(job.spec.image, []).append(f"job:{job.id}")
    return found


def _users(view: EntityView, references: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Who uses this image."""
    digest = _noted(view).partition(",")[0]
    return sorted({*references.get(view.name, ()), *references.get(digest, ())})


def _is_a_users(view: EntityView) -> bool:
    """Whether a user desires it to be there, and it is known whether it is, and by which digest."""
    desired, seen = view.desired.get(kind.state.name), view.observed.get(kind.state.name)
    if desired is None or seen is None or not seen.known:
        return False
    return desired.value == State.BUILT and desired.owner.startswith(_BY_USER)


def _awaited(client: Client, entity: str, state: State, within: str) -> int:
    """Wait until it is so, or is known not to come; an exit code."""
    from haptera.cli.output.live.waiting import wait_until_none  # only here: it brings asyncio

    within_s = parse_duration_ms(within) / _MS_PER_S
    left = wait_until_none(client.access, entity, _UNDER_WAY.format(entity), within_s)
    view = client.ask(calls.entity(entity))
    if view.condition is Condition.CONVERGED:
        noted = _noted(view)
        say(f"{entity} is {state}" + (f": {noted}" if noted else ""))
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
    return view.desired_value(kind.state.name) == _state(view) == State.ABSENT


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
    held = (view.desired_value(one.name) for one in (kind.recipe, kind.source))
    return next((str(one) for one in held if one is not None), "")
