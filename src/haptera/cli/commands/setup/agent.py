"""`haptera setup agent`: this machine, which runs already, as a node."""

import socket
from pathlib import Path

import click
import msgspec

from haptera.cli.commands.setup.files import (
    begin,
    etc_option,
    start_option,
    units_option,
    write_file,
    write_options,
    write_unit,
)
from haptera.cli.main import OK
from haptera.cli.output.printing import say
from haptera.cli.verb import unwatched
from haptera.client import Access, calls
from haptera.client.address import Host, parse_address
from haptera.client.bare import ask_bare
from haptera.model.errors import HapteraError, ParseError, UnreadableError


@click.command()
@unwatched("it runs once")
@click.option(
    "--from",
    "source",
    metavar="FILE|URL",
    required=True,
    help="A client file for this node (- for standard input), or the URL of the parent.",
)
@click.option("--token", help="With a URL: a token of scope exec for this node.")
@click.option(
    "--authority",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With a URL: the file of the certificate that the parent is trusted by, its ca.pem.",
)
@click.option("--node", metavar="NAME", help="The name of this node; default: the host name.")
@click.option("--address", help="Its own address; default: the one that reaches the parent.")
@etc_option
@units_option
@start_option
def agent(  # noqa: PLR0913 (an argument for each option)
    source: str,
    token: str | None,
    authority: Path | None,
    *,
    node: str | None,
    address: str | None,
    etc: Path,
    units: Path,
    no_start: bool,
) -> int:
    r"""Join this machine, which runs already, to a cluster as a node; it is not booted.

    The node must be declared in the site file. The token is one for this node alone, which the
    agent uses at each boot: haptera token make NAME --scope exec --within NAME --client-file.

    \b
    Examples:
      haptera setup agent --from - --node n17 < n17.json
      haptera setup agent --from https://10.9.0.1:4270 --token hp1.ID.SECRET --authority ca.pem
    """
    from haptera.daemon.settings import check_address

    access = _access(source, token, authority)
    name = node or socket.gethostname().partition(".")[0]
    # Not needed yet: whether it is given says all that could be wrong, while somebody looks.
    ask_bare(calls.invite(name, why="by `haptera setup agent`"), access)
    own = _own_address(access) if address is None else address
    check_address(own, "--address")
    words = ["--address", own, "--from", f"{etc}/agent.json", "--node", name]
    write_options(etc / "agent.env", "HAPTERA_AGENT", words)
    write_file(etc / "agent.json", msgspec.json.encode(access).decode(), 0o600)
    write_unit("haptera-agent", units)
    if no_start or not begin("haptera-agent"):
        say("no systemd runs here; this starts the agent:")
        say(f"  haptera agent {' '.join(words)}")
    else:
        say(f"haptera-agent runs; at the parent: haptera why {name}")
    return OK


def _access(source: str, token: str | None, authority: Path | None) -> Access:
    """Whom to ask, and as whom.

    Raises:
        HapteraError: the file cannot be read, or is none.
        UsageError: options contradict each other.
    """
    if "://" in source:
        if token is None:
            raise click.UsageError("--from URL needs --token.")
        trusted = None if authority is None else _read(str(authority)).decode("ascii", "replace")
        return Access(source, token, authority=trusted)
    if token is not None or authority is not None:
        raise click.UsageError("A client file has its own token and authority.")
    try:
        return msgspec.json.decode(_read(source), type=Access)
    except (ValueError, RecursionError) as error:
        do = "make one: haptera token make NAME --scope exec --within NAME --client-file"
        raise ParseError(f"is not a client file: {error}", where=source, do=do) from None


def _read(source: str) -> bytes:
    """The content of a file, or of standard input.

    Raises:
        HapteraError: it cannot be read.
    """
    try:
        with click.open_file(source, "rb") as file:
            content: bytes = file.read()
            return content
    except OSError as error:
        what, do = f"cannot be read: {error.strerror}", "name a file that is there"
        raise UnreadableError(what, where=source, do=do) from None


def _own_address(access: Access) -> str:
    """The address from which this machine reaches its parent.

    Raises:
        HapteraError: none does.
    """
    host = parse_address(access.url)
    assert isinstance(host, Host), "it has answered"
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.connect((host.name, host.port))  # sends nothing
            return str(one.getsockname()[0])
    except OSError as error:
        what = f"no address reaches the parent: {error.strerror}"
        raise HapteraError(what, where=access.url, do="give it: --address") from None
