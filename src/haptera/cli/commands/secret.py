"""`haptera secret`: the secrets that a parent keeps, put where it finds them."""

import sys
from pathlib import Path

import click
import msgspec

from haptera.cli.output.printing import Format, names_option, print_names
from haptera.cli.output.tables import print_table
from haptera.model.entity import check_name
from haptera.model.errors import HapteraError
from haptera.runtime.processes.secrets import SECRET_BYTES_MAX, Kept


class SecretView(msgspec.Struct, frozen=True):
    """A secret's name, and which modules may name it; None: all."""

    name: str
    users: list[str] | None


_dir_option = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    show_default="here",
    help="Where the parent's .haptera/ is.",
)


@click.group()
def secret() -> None:
    """Keep secrets for modules, beside a parent's state; they are never shown again."""


@secret.command("set")
@click.argument("name")
@_dir_option
def put(name: str, directory: Path) -> None:
    r"""Keep what stands on standard input as NAME; settings name it as {secret: NAME}.

    A module is handed the new value when it is started the next time.

    \b
    Examples:
      haptera secret set bmc < password.txt
      pass show bmc | haptera secret set bmc
    """
    check_name(name)
    if sys.stdin.isatty():
        value = click.prompt(name, hide_input=True, confirmation_prompt=True, err=True).encode()
    else:
        value = sys.stdin.buffer.read(SECRET_BYTES_MAX + 2)
    _kept(directory).put(name, value)


@secret.command("list")
@_dir_option
@names_option
def names(directory: Path, output: str) -> None:
    r"""Show the names of all secrets, and which modules may name each.

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
        print_table(("SECRET", "MODULES"), rows, output)


@secret.command("allow")
@click.argument("name")
@click.argument("modules", metavar="MODULE...", nargs=-1, required=True)
@_dir_option
def allow(name: str, modules: tuple[str, ...], directory: Path) -> None:
    r"""Let only these modules name the secret NAME; until then, all may.

    A module that may not is not started with settings that name it, whoever wrote them.

    \b
    Examples:
      haptera secret allow bmc labnode
      haptera secret allow tls 'service@rack1n*'
      haptera secret allow bmc '*'
    """
    kept = _kept(directory)
    if check_name(name) not in kept.names():
        raise HapteraError(f"there is no secret {name!r}", do="haptera secret list")
    kept.allow(name, modules)


@secret.command("remove")
@click.argument("name")
@_dir_option
def remove(name: str, directory: Path) -> None:
    r"""Keep NAME no longer.

    \b
    Examples:
      haptera secret remove bmc
      haptera secret remove bmc --dir /srv/cluster
    """
    _kept(directory).remove(name)


def _kept(directory: Path) -> Kept:
    home = directory.resolve() / ".haptera" / "parent"
    if not home.is_dir():
        raise HapteraError(
            "no parent was started here yet", where=str(home), do="name its directory with --dir"
        )
    return Kept(home)
