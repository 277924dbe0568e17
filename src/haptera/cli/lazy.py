"""Groups of commands that import each only when it is called: most need a tenth of all."""

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import click
from click.exceptions import NoSuchCommand

from haptera.cli.extras import lacking
from haptera.cli.output.printing import say
from haptera.model.errors import HapteraError

# What other programs call it: said to who types that, where a group has the verb.
_OTHER_WORDS: Final = {
    "create": ("make", "new", "build"),
    "add": ("make", "new"),
    "delete": ("revoke", "cancel", "rm"),
    "remove": ("revoke", "cancel", "rm"),
    "ls": ("list", "get"),
    "show": ("get", "list"),
    "describe": ("why",),
    "validate": ("check",),
}


def no_such(group: click.Group, ctx: click.Context, word: str) -> NoSuchCommand:
    """The error of a word that is no verb of a group, with the verb that may be meant."""
    names = group.list_commands(ctx)
    meant = next((one for one in _OTHER_WORDS.get(word, ()) if one in names), None)
    if meant is None:
        return NoSuchCommand(word, None, names, ctx)
    path = f"{ctx.command_path} {meant}"
    return NoSuchCommand(word, f"No such command {word!r}: it is {path}.", ctx=ctx)


class Words(click.Group):
    """A group that knows what other programs call its verbs, and what they were called before."""

    def __init__(
        self, *args: Any, former: Mapping[str, str] = MappingProxyType({}), **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self._former = former

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            place = self._former.get(error.command_name)
            if place is None:
                raise no_such(self, ctx, error.command_name) from None
            command = _command(place)
            text = f"warning: {ctx.command_path} {args[0]} is called haptera {command.name} now"
            say(text, err=True, fg="yellow")
            return command.name, command, args[1:]


class Lazy(Words):
    """A group whose commands stand at these places, `module:attribute` by name."""

    def __init__(self, *args: Any, places: Mapping[str, str], **more: Any) -> None:
        super().__init__(*args, **more)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._places:
            return None
        try:
            return _command(self._places[cmd_name])
        except ModuleNotFoundError as error:
            return absent(cmd_name, lacking(error))


def _command(place: str) -> click.Command:
    module, _, name = place.partition(":")
    command: click.Command = getattr(importlib.import_module(module), name)
    _keep_lines(command)
    return command


def absent(name: str, error: HapteraError) -> click.Command:
    """A verb that this installation cannot offer: listed, and refused with what to install."""

    def refuse(**_: object) -> None:
        raise error

    return click.Command(
        name,
        callback=refuse,
        short_help=f"(not installed: {error.do})",
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
    )


def _keep_lines(command: click.Command) -> None:
    r"""Have click leave the lines below a \b as they are: in a raw docstring it is two letters."""
    if command.help is not None:
        command.help = command.help.replace("\\b", "\b")
        # The whole first sentence in lists of commands: click would cut it after a line.
        command.short_help = command.get_short_help_str(len(command.help))
    if isinstance(command, click.Group):
        for one in command.commands.values():
            _keep_lines(one)
