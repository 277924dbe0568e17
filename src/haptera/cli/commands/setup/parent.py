"""`haptera setup parent`: a first parent on this machine."""

import grp
import json
import os
import pwd
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Final

import click

from haptera.cli.commands.setup.doctor import STATE
from haptera.cli.commands.setup.files import (
    begin,
    etc_option,
    start_option,
    units_option,
    write_file,
    write_options,
    write_unit,
)
from haptera.cli.main import OK, REFUSED
from haptera.cli.output.printing import say
from haptera.cli.verb import unwatched
from haptera.model.entity import check_name
from haptera.model.errors import Code, HapteraError

# Who runs the parent by its unit as it is packaged.
UNITS_USER: Final = "haptera"
SITE: Final = """\
# yaml-language-server: $schema=site.schema.json
# What this cluster should be: the machines below `nodes`, what they should have below `desired`.
# `haptera check site.yaml` finds mistakes; `haptera apply --wait site.yaml` applies it.
cluster: {cluster}
modules: [jobs, service]
nodes: {{}}
desired: {{}}
"""


@click.command()
@unwatched("it runs once")
@click.option("--listen", metavar="ADDRESS", help="Where nodes and people reach it; asked for.")
@click.option("--cluster", metavar="NAME", help="The name of the cluster; asked for.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="A host name of the API.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=STATE,
    show_default=True,
    help="The directory for the parent's .haptera/.",
)
@click.option(
    "--user",
    default=UNITS_USER,
    show_default=True,
    help="Who runs it; made if missing. root: for network boot and images.",
)
@etc_option
@units_option
@start_option
def parent(  # noqa: PLR0913 (an argument for each option)
    listen: str | None,
    cluster: str | None,
    hosts: tuple[str, ...],
    directory: Path,
    user: str,
    *,
    etc: Path,
    units: Path,
    no_start: bool,
) -> int:
    r"""Set up this machine as a parent: its user, a first site file, its options, its unit.

    It first checks what `haptera doctor` checks, and writes nothing where something is grave. What
    it needs and is not given, it asks for. A site file that is there is kept.

    \b
    Examples:
      haptera setup parent
      haptera setup parent --listen 10.9.0.1 --cluster kelp --host parent.example
      haptera setup parent --listen 10.0.0.1 --cluster first --user root
    """
    from haptera.cli.commands.setup.ailments import ailments
    from haptera.cli.commands.setup.machine import look
    from haptera.daemon.settings import check_address

    listen = _given(listen, "Address of this machine, where nodes reach it", "--listen")
    check_address(listen)
    site = etc / "site.yaml"
    if not site.exists():
        cluster = check_name(_given(cluster, "Name of the cluster", "--cluster"))
    found = ailments(look(directory, listen))
    for one in found:
        say(f"{'error' if one.grave else 'warning'}: {one.what}\n  {one.do}", err=True)
    if any(one.grave for one in found):
        return REFUSED
    _make_user(user, directory)
    if not site.exists():
        write_file(site, SITE.format(cluster=cluster), 0o644)
    _write_schema(etc / "site.schema.json")
    words = ["--listen", listen, *(word for name in hosts for word in ("--host", name))]
    # The first start needs a site file; a later one with it would undo what was applied since.
    served = (directory / ".haptera" / "parent" / "state.db").exists()
    _write_options(etc, [*words, *(() if served else ("--site", str(site)))])
    _write_unit(user, units)
    if no_start or not begin("haptera-parent"):
        _say_next(directory, etc, user, runs=False)
        return OK
    _write_options(etc, words)
    _say_next(directory, etc, user, runs=True)
    return OK


def _given(value: str | None, question: str, option: str) -> str:
    """The value of an option, or else a person's answer.

    Raises:
        UsageError: neither does.
    """
    if value is not None:
        return value
    if not sys.stdin.isatty():
        raise click.UsageError(f"{option} is needed, for there is nobody to ask.")
    answer: str = click.prompt(question, err=True)
    return answer


def _make_user(user: str, directory: Path) -> None:
    """Have a user without a password or a shell, and a folder of its own.

    Raises:
        HapteraError: there is neither that user nor the right to make it.
    """
    try:
        known = pwd.getpwnam(user)
    except KeyError:
        if os.geteuid() or shutil.which("useradd") is None:
            what = f"there is no user {user}, and none can be made"
            raise HapteraError(what, do="run this as root, or name a user: --user") from None
        home = ("--home-dir", str(directory), "--no-create-home", "--shell", "/usr/sbin/nologin")
        subprocess.run(["useradd", "--system", "--user-group", *home, user], check=True)
        known = pwd.getpwnam(user)
        say(f"made the user {user}")
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chown(directory, known.pw_uid, known.pw_gid)
    except OSError as error:
        raise HapteraError(
            f"cannot be made {user}'s: {error.strerror}",
            where=str(directory),
            do="run this as root, or give another folder: --dir",
            code=Code.FILE_UNWRITABLE,
        ) from None


def _write_unit(user: str, units: Path) -> None:
    """Put the unit in place; it runs as this user by a drop-in, since packages bring the unit."""
    write_unit("haptera-parent", units)
    known = pwd.getpwnam(user)
    text = f"[Service]\nUser={user}\nGroup={grp.getgrgid(known.pw_gid).gr_name}\n"
    if known.pw_uid == 0:
        root = resources.files("haptera.cli") / "units" / "root.conf"
        text += root.read_text(encoding="utf-8").replace("[Service]\n", "")
    file = units / "haptera-parent.service.d" / "user.conf"
    if user != UNITS_USER:
        write_file(file, text, 0o644)
    elif file.exists():
        file.unlink()
        say(f"removed {file}")


def _write_schema(path: Path) -> None:
    """Write the JSON schema of site files, which editors find by the site file's first line."""
    from haptera.site.lint.schema import schema

    write_file(path, json.dumps(schema(), indent=2) + "\n", 0o644)


def _write_options(etc: Path, words: list[str]) -> None:
    write_options(etc / "parent.env", "HAPTERA_SERVE", words)


def _say_next(directory: Path, etc: Path, user: str, *, runs: bool) -> None:
    client = directory / ".haptera" / "client.json"
    if runs:
        say("haptera-parent runs, and starts at each boot")
    else:
        begins = f"setpriv --reuid={user} --regid={user} --init-groups"
        say("no systemd runs here; this starts the parent:")
        say(f"  . {etc}/parent.env; {begins} haptera serve --dir {directory} $HAPTERA_SERVE")
    say("next:")
    say(f"  export HAPTERA_CLIENT={client}")
    say(f"  declare machines in {etc}/site.yaml, then: haptera apply --wait {etc}/site.yaml")
    say("  for each that runs already: haptera token make NAME --scope exec --within NAME \\")
    say("    --for 365d --client-file | ssh root@NAME haptera setup agent --from -")
