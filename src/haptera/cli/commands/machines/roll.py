"""`haptera roll`: rolling updates of systems to another image, and their progress."""

import shlex
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, Final

import click

from haptera.cli.commands.inspect.wait import within_option
from haptera.cli.commands.machines.timeline import timeline_command
from haptera.cli.input.rolls import MS_PER_S, deadline_option, roll_body, roll_options
from haptera.cli.input.terms import why_option
from haptera.cli.main import NOT_CONVERGED, OK, REFUSED, the_client
from haptera.cli.output.live.redrawing import keep_showing, watch_option
from haptera.cli.output.printing import print_error, say
from haptera.cli.output.tables import print_table
from haptera.cli.verb import unwatched
from haptera.client import Client, calls
from haptera.controllers.roll.beginning import (
    Patches,
    next_attempt,
    roll_entity,
)
from haptera.controllers.roll.progress import RollProgress, RollState, old_images, progress
from haptera.kinds import node, roll, system
from haptera.kinds.roll import RollWish
from haptera.model.answers.views import EntityView
from haptera.model.errors import HapteraError
from haptera.model.walltime import parse_duration_ms
from haptera.rest.schemas import EntityPatch
from haptera.runtime.clock import wall_s

_HEADERS: Final = ("ROLL", "IMAGE", "STATE", "NEW", "UNDER WAY", "OF", "WHY")
_KINDS: Final = (node.kind.name, roll.kind.name, system.kind.name)
_OVER: Final = (RollState.DONE, RollState.HALTED, RollState.ABORTED, RollState.UNDONE)


class RollGroup(click.Group):
    """What is none of its commands is a selector: `haptera roll SELECTOR` begins a roll."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = any(one.startswith("--image") for one in args)
        mistyped = args and not named and get_close_matches(args[0], self.commands)
        if args and not mistyped and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["start", *args]
        return super().parse_args(ctx, args)


@click.group("roll", cls=RollGroup)
def roll_group() -> None:
    """Update systems to another image, a few at a time: haptera roll SELECTOR --image NAME."""


roll_group.add_command(timeline_command)
_name_argument = click.argument("name", metavar="ROLL")


@roll_group.command()
@unwatched("`haptera roll status --watch` shows the progress of rolls")
@roll_options
@click.option("--no-wait", is_flag=True, help="Do not wait; see `haptera roll status`.")
@click.option("--rehearsed", is_flag=True, help="Rehearse it first; begin only if that ends well.")
@why_option
@within_option
@click.pass_context
def start(
    ctx: click.Context,
    /,
    selector: str,
    no_wait: bool,
    rehearsed: bool,
    within: str,
    **options: Any,
) -> int:
    r"""Update the systems that SELECTOR matches to an image, a few at a time.

    All of them get the image ready beside what they run. Then the canaries change over, and if
    these prove well, more and more at a time, each once its node is free. Where one fails, it goes
    back, and the roll halts.

    \b
    Examples:
      haptera roll system:compute@n[1-4] --image debian-b
      haptera roll rack1n[1-40] --image debian-b --canary 2 --max-unavailable 10% --no-wait
    """
    client = the_client(ctx)
    body = roll_body(selector, options)
    if rehearsed:
        _check_rehearsed(ctx, selector, options)
    begun = client.ask(calls.begin_roll(body, take=options["take"], why=options["why"]))
    say(f"roll {begun.name}: {begun.systems} systems to {body.image}")
    return OK if no_wait else _awaited(client, begun.name, within)


def _check_rehearsed(ctx: click.Context, selector: str, options: Mapping[str, Any]) -> None:
    # Only here: without a rehearsal nobody waits for the engine to be imported.
    from haptera.cli.rehearsed import check_rehearsed, rehearsed_roll

    image = shlex.quote(options["image_name"])
    command = f"haptera rehearse roll {shlex.quote(selector)} --image {image}"
    check_rehearsed(rehearsed_roll(ctx, selector, options), command)


@roll_group.command()
@click.argument("name", metavar="ROLL", required=False)
@watch_option
@click.pass_context
def status(ctx: click.Context, name: str | None, watch: bool) -> None:
    r"""Show the progress of rolls, and what they wait for.

    \b
    Examples:
      haptera roll status
      haptera roll status debian-b --watch
    """
    client = the_client(ctx)
    if name is not None:
        # What is not there is not shown as an empty list.
        client.ask(calls.entity(roll_entity(name)))

    def show() -> None:
        rows = [one for one in _progress(_views(client)) if name in (None, one.name)]
        none = "there is no roll: `haptera roll SELECTOR --image NAME` begins one"
        print_table(_HEADERS, [tuple(map(str, one)) for one in rows], "table", none=none)

    if watch:
        keep_showing(client, calls.events(kinds=_KINDS), show, "table")
    else:
        show()


_EXAMPLES: Final = """

\b
Examples:
  haptera roll {0} debian-b
  haptera roll {0} debian-b -m "the queue is full"
"""


def _wished(name: str, wish: RollWish, help_text: str) -> None:
    """One more command, which says what is wanted of a roll."""

    @roll_group.command(name, help=help_text + _EXAMPLES.format(name))
    @unwatched("`haptera roll status --watch` shows the progress of rolls")
    @_name_argument
    @why_option
    @click.pass_context
    def say(ctx: click.Context, name: str, why: str | None) -> None:
        client = the_client(ctx)
        entity = roll_entity(name)
        client.ask(calls.entity(entity))
        client.ask(calls.desire(entity, {roll.wish.name: wish}, why=why))

    assert say.help


_wished("pause", RollWish.PAUSE, "Update no further systems until the roll is resumed.")
_wished(
    "abort",
    RollWish.ABORT,
    "Stop the roll, and roll back systems that have not passed their health check.",
)
_wished("undo", RollWish.UNDO, "Roll all its systems back to their previous images.")


@roll_group.command()
@unwatched("`haptera roll status --watch` shows the progress of rolls")
@_name_argument
@deadline_option
@why_option
@within_option
@click.pass_context
def resume(ctx: click.Context, name: str, deadline: str, why: str | None, within: str) -> int:
    r"""Continue a roll that was paused, aborted or halted; failed systems are tried once more.

    \b
    Examples:
      haptera roll resume debian-b
      haptera roll resume debian-b --within 1h -m "the disk was full"
    """
    client = the_client(ctx)
    client.ask(calls.entity(roll_entity(name)))
    systems = _systems(client, name)
    # By itself: with the attempts, in one write, it is what begins a roll.
    later: Patches = {roll_entity(name): {roll.deadline.name: _from_now_s(deadline)}}
    _write(client, later, take=False, why=why)
    patches: Patches = {roll_entity(name): {roll.wish.name: RollWish.RUN, roll.halted.name: None}}
    patches |= {one.entity: {system.attempt.name: next_attempt(systems)} for one in systems}
    _write(client, patches, take=False, why=why)
    return _awaited(client, name, within)


@roll_group.command()
@unwatched("`haptera roll status --watch` shows the progress of rolls")
@_name_argument
@why_option
@click.pass_context
def rm(ctx: click.Context, name: str, why: str | None) -> None:
    r"""Delete a roll: what runs its image keeps it, and of all others the old one is desired.

    \b
    Examples:
      haptera roll rm debian-b
      haptera roll rm debian-b -m "superseded"
    """
    client = the_client(ctx)
    view = client.ask(calls.entity(roll_entity(name)))
    patches: Patches = {view.entity: dict.fromkeys(view.desired)}
    forgotten = dict.fromkeys((system.roll.name, system.spare.name))
    patches |= {one.entity: dict(forgotten) for one in _systems(client, name)}
    # Said of all of them: the controller may exchange the two images right now.
    for entity, old in old_images(view, _views(client)).items():
        patches[entity][system.image.name] = old
    _write(client, patches, take=False, why=why)


def _from_now_s(duration: str) -> int:
    return int(wall_s()) + parse_duration_ms(duration) // MS_PER_S


def _write(client: Client, patches: Patches, *, take: bool, why: str | None) -> None:
    """All of it, or nothing."""
    many = [EntityPatch(entity, values) for entity, values in patches.items()]
    client.ask(calls.patch(many, all_or_nothing=True, take=take, why=why))


def _awaited(client: Client, name: str, within: str) -> int:
    """Show how far it has come until it is over; an exit code."""
    from haptera.cli.output.live.waiting import watch_while  # only here: it brings asyncio

    views = _views(client)
    one, said = _one(views, name), ""

    def goes_on(views: Collection[EntityView]) -> bool:
        nonlocal one, said
        one = _one(views, name)
        if one.state not in _OVER and said != (said := _line(one)):
            say(said)
        return one.state not in _OVER

    if goes_on(views):
        events = calls.events(kinds=_KINDS)
        watch_while(client.access, events, goes_on, parse_duration_ms(within) / MS_PER_S)
    if one.state is RollState.DONE:
        say(_line(one))
        return OK
    do = f"haptera roll status {name}; then haptera roll resume {name}, or abort or undo"
    print_error(HapteraError(f"it is {one.state}: {one.why}", where=roll_entity(name), do=do))
    return REFUSED if one.state in _OVER else NOT_CONVERGED


def _line(one: RollProgress) -> str:
    under_way = f", {one.under_way} under way" if one.under_way else ""
    return f"{one.state}: {one.proven} of {one.total}{under_way}" + (
        f"; {one.why}" if one.why else ""
    )


def _progress(views: Collection[EntityView]) -> list[RollProgress]:
    rolls = [one for one in views if one.kind == roll.kind.name and one.desired]
    return [progress(one, views, wall_s()) for one in sorted(rolls, key=lambda one: one.name)]


def _views(client: Client) -> list[EntityView]:
    return [one for kind in _KINDS for one in client.ask(calls.entities(kind=kind)).entities]


def _one(views: Collection[EntityView], name: str) -> RollProgress:
    found = next((one for one in _progress(views) if one.name == name), None)
    if found is None:
        raise HapteraError("it is gone", where=roll_entity(name), do="see haptera roll status")
    return found


def _systems(client: Client, name: str) -> list[EntityView]:
    every = client.ask(calls.entities(kind=system.kind.name)).entities
    return [one for one in every if one.desired_value(system.roll.name) == name]
