"""`haptera secret`: the secrets that a parent keeps, put where it finds them."""

import sys
from pathlib import Path
from typing import Final

import click
import msgspec

from haptera.cli.input.directory import dir_option
from haptera.cli.lazy import Words
from haptera.cli.output.printing import Format, names_option, print_names, say
from haptera.cli.output.tables import print_table
from haptera.cli.verb import answers, unwatched
from haptera.client import Client, calls, find
from haptera.kinds import module
from haptera.model.answers.views import EntityView
from haptera.model.declared.secrets import Keeper, Reference, references
from haptera.model.entity import parse_entity
from haptera.model.errors import HapteraError, UnknownNameError, UnreadableError
from haptera.runtime.identity.private import private_directory
from haptera.runtime.processes.secrets import SECRET_BYTES_MAX, SecretStore
from haptera.selectors.selector import fold_entities


class SecretView(msgspec.Struct, frozen=True):
    """A secret's name, and which modules may name it; None: all."""

    name: str
    users: list[str] | None


_HELD_UP: Final = "module:* and condition in (acting,waiting,stuck)"


@click.group(cls=Words)
def secret() -> None:
    """Store secrets for modules, beside a parent's state; they are never shown again."""


@secret.command("set")
@unwatched("it runs once")
@click.argument("name")
@dir_option
def put(name: str, directory: Path) -> None:
    r"""Store standard input as the secret NAME; settings refer to it as {secret: NAME}.

    Modules get the new value at their next start; a module that waits for this secret is retried at
    once. You can store secrets before the parent first runs.

    \b
    Examples:
      haptera secret set bmc < password.txt
      pass show bmc | haptera secret set bmc
    """
    if sys.stdin.isatty():
        value = click.prompt(name, hide_input=True, confirmation_prompt=True, err=True).encode()
    else:
        value = sys.stdin.buffer.read(SECRET_BYTES_MAX + 2)
    if not directory.is_dir():
        raise UnreadableError("the folder does not exist", where=str(directory), do="make it first")
    root = private_directory(directory.resolve() / ".haptera")
    SecretStore(private_directory(root / "parent")).put(name, value)
    _wake(directory, name)


def _wake(directory: Path, name: str) -> None:
    """Try the modules again that are held up and name this secret, if their parent runs."""
    client_file = directory.resolve() / ".haptera" / "client.json"
    if client_file.exists() and (woken := _woken(client_file, name)):
        say(f"tried again: {fold_entities(map(parse_entity, woken))}", err=True)


def _woken(client_file: Path, name: str) -> list[str]:
    try:
        with Client(find(client_file).access) as client:
            views = client.ask(calls.entities(_HELD_UP)).entities
            woken = [view.entity for view in views if _names(view, name)]
            for entity in woken:
                client.ask(calls.retry(entity, why=f"secret {name} was set"))
    except HapteraError:
        return []  # it does not run, or does not let in who may write here: it will see by itself
    return woken


def _names(view: EntityView, name: str) -> bool:
    """Whether the settings of a module name a secret."""
    given = view.desired.get(module.settings.name)
    settings = {} if given is None else msgspec.json.decode(str(given.value))
    return Reference(Keeper.PARENT, name) in references(settings)


@secret.command("list")
@answers(list[SecretView])
@unwatched("it reads local files, for which there are no events: run it again")
@dir_option
@names_option
def names(directory: Path, output: str) -> None:
    r"""List the names of all secrets, and which modules may use each.

    \b
    Examples:
      haptera secret list
      haptera secret list --dir /srv/cluster
    """
    kept = _kept(directory)
    views = [SecretView(name, kept.users(name)) for name in kept.names()]
    if not Format(output).for_people:
        print_names([one.name for one in views], views, output)
    else:
        rows = [(one.name, "*" if one.users is None else ", ".join(one.users)) for one in views]
        none = "there is no secret: `haptera secret set NAME < FILE` stores one"
        print_table(("SECRET", "MODULES"), rows, output, none=none)


@secret.command("allow")
@unwatched("it runs once")
@click.argument("name")
@click.argument("modules", metavar="MODULE...", nargs=-1, required=True)
@dir_option
def allow(name: str, modules: tuple[str, ...], directory: Path) -> None:
    r"""Allow only these modules to use the secret NAME; by default all modules may.

    A module that may not use it is not started with settings that name it.

    \b
    Examples:
      haptera secret allow bmc labnode
      haptera secret allow tls 'service@rack1n*'
      haptera secret allow bmc '*'
    """
    kept = _kept(directory)
    if name not in kept.names():
        raise UnknownNameError(f"there is no secret {name!r}", do="haptera secret list")
    kept.allow(name, modules)
    _wake(directory, name)


@secret.command("remove")
@unwatched("it runs once")
@click.argument("name")
@dir_option
def remove(name: str, directory: Path) -> None:
    r"""Remove the secret NAME.

    \b
    Examples:
      haptera secret remove bmc
      haptera secret remove bmc --dir /srv/cluster
    """
    _kept(directory).remove(name)


def _kept(directory: Path) -> SecretStore:
    home = directory.resolve() / ".haptera" / "parent"
    if not home.is_dir():
        raise UnreadableError(
            "there is no parent state here", where=str(home), do="name its directory with --dir"
        )
    return SecretStore(home)
