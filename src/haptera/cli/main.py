"""The command `haptera`: its commands, loaded when called, and its exit codes."""

import errno
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import click

import haptera
from haptera.cli.extras import lacking
from haptera.cli.lazy import Lazy, absent
from haptera.cli.output.printing import colours, print_error, say
from haptera.cli.verb import explained
from haptera.client import Access, Client, UnreachableError, find
from haptera.client.protocol import ANSWER_WITHIN_S
from haptera.model.errors import Code, HapteraError

OK: Final = 0
REFUSED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
NOT_CONVERGED: Final = 4
NOTHING_DESIRED: Final = 5
INTERRUPTED: Final = 130

# With what an answer fails that cannot be written where it is sent.
SHOWN_MAX: Final = 60
_UNWRITABLE: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}

# By what verbs are about, as their rooms are: sections of the help.
_COMMANDS: Final = {
    "Site files": {
        "apply": "haptera.cli.commands.site.apply:apply",
        "plan": "haptera.cli.commands.site.plan:plan",
        "rehearse": "haptera.cli.commands.site.rehearse:rehearse",
        "diff": "haptera.cli.commands.site.diff:diff",
        "export": "haptera.cli.commands.site.export:export",
        "import": "haptera.cli.commands.site.import_:import_from",
        "check": "haptera.cli.commands.site.check:check",
        "site": "haptera.cli.commands.site.site:site",
    },
    "State": {
        "status": "haptera.cli.commands.inspect.status:status",
        "nodes": "haptera.cli.commands.inspect.nodes:nodes",
        "top": "haptera.cli.commands.inspect.top:top",
        "wait": "haptera.cli.commands.inspect.wait:wait",
        "why": "haptera.cli.commands.inspect.why:why",
        "chain": "haptera.cli.commands.inspect.chain:chain",
        "graph": "haptera.cli.commands.inspect.graph:graph",
        "logs": "haptera.cli.commands.inspect.logs:logs",
        "get": "haptera.cli.commands.inspect.get:get",
        "history": "haptera.cli.commands.inspect.history:history",
        "watch": "haptera.cli.commands.inspect.watch:watch",
    },
    "Changes": {
        "set": "haptera.cli.commands.change.set:set_values",
        "unset": "haptera.cli.commands.change.unset:unset_values",
        "retry": "haptera.cli.commands.change.retry:retry",
        "revert": "haptera.cli.commands.change.revert:revert",
        "override": "haptera.cli.commands.change.override:override",
        "brake": "haptera.cli.commands.change.brake:brake",
        "trial": "haptera.cli.commands.change.trial:trial",
        "freeze": "haptera.cli.commands.change.freeze:freeze",
        "thaw": "haptera.cli.commands.change.thaw:thaw",
    },
    "Machines and images": {
        "power": "haptera.cli.commands.machines.power:switch",
        "health": "haptera.cli.commands.machines.health:health",
        "lemons": "haptera.cli.commands.machines.lemons:lemons",
        "console": "haptera.cli.commands.machines.console:console",
        "bmc": "haptera.cli.commands.machines.bmc:bmc",
        "exec": "haptera.cli.commands.node.exec_:execute",
        "evict": "haptera.cli.commands.machines.evict:evict",
        "unclaimed": "haptera.cli.commands.machines.unclaimed:unclaimed",
        "claim": "haptera.cli.commands.machines.claim:claim",
        "image": "haptera.cli.commands.machines.image:image",
        "roll": "haptera.cli.commands.machines.roll:roll_group",
        "minos": "haptera.cli.commands.machines.minos:minos",
    },
    "Jobs": {
        "submit": "haptera.cli.commands.queue.submit:submit",
        "jobs": "haptera.cli.commands.queue.jobs:jobs",
        "cancel": "haptera.cli.commands.queue.cancel:cancel",
        "queue": "haptera.cli.commands.queue.queue:queue",
        "drain": "haptera.cli.commands.queue.drain:drain",
        "hold": "haptera.cli.commands.queue.hold:hold",
        "undrain": "haptera.cli.commands.queue.undrain:undrain",
    },
    "On a node": {
        "job": "haptera.cli.commands.node.job:job",
        "channels": "haptera.cli.commands.node.channels:channels",
        "fence": "haptera.cli.commands.node.fence:fence",
        "agent": "haptera.cli.commands.node.agent:agent",
    },
    "Parents": {
        "secret": "haptera.cli.commands.parent.secret:secret",
        "backup": "haptera.cli.commands.parent.backup:backup",
        "restore": "haptera.cli.commands.parent.restore:restore",
        "token": "haptera.cli.commands.parent.token:token",
        "lab": "haptera.cli.commands.parent.lab:lab",
        "audit": "haptera.cli.commands.parent.audit:audit",
        "standby": "haptera.cli.commands.parent.standby:standby",
        "promote": "haptera.cli.commands.parent.promote:promote",
        "serve": "haptera.cli.commands.parent.serve:serve",
    },
    "Installation": {
        "setup": "haptera.cli.commands.setup:setup",
        "doctor": "haptera.cli.commands.setup.doctor:doctor",
    },
    "Tools": {
        "module": "haptera.cli.commands.module:module",
        "debug": "haptera.cli.commands.debug:debug",
        "completion": "haptera.cli.commands.completion:completion",
    },
}
_PLACES: Final = {name: place for verbs in _COMMANDS.values() for name, place in verbs.items()}


class Verbs(Lazy):
    """The verbs; what goes wrong in one is written as its answer would be."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except UnreachableError as error:
            print_error(error)
            return UNREACHABLE
        except UnicodeEncodeError as error:
            # Python has bytes of an argument that are no text as halves of characters.
            what = f"{error.object[:SHOWN_MAX]!r} is not text"
            print_error(HapteraError(what, do="write it in UTF-8"))
            return REFUSED
        except (HapteraError, ModuleNotFoundError) as error:
            print_error(error if isinstance(error, HapteraError) else lacking(error))
            return REFUSED

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_packaged()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One of haptera's own, or else one that an installed package brings."""
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in (packaged := _packaged()):
            return own
        try:
            return packaged[cmd_name]()
        except HapteraError as error:  # a bad package takes the help of no other verb away
            return absent(cmd_name, error)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs in sections, their columns in line."""
        widest = max(map(len, _PLACES))
        for title, verbs in {**_COMMANDS, "Of packages": _packaged()}.items():
            found = ((name, self.get_command(ctx, name)) for name in verbs)
            rows = [(name.ljust(widest), one.get_short_help_str()) for name, one in found if one]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _packaged() -> Mapping[str, Callable[[], click.Command]]:
    """The verbs that installed packages bring, each imported when called; none replaces an own."""
    from haptera.kinds.brought import VERBS_GROUP, brought, imported_as  # most verbs do without

    found = brought(VERBS_GROUP).items()
    return {
        name: partial(imported_as, click.Command, some)
        for name, some in found
        if name not in _PLACES
    }


@click.group(
    cls=Verbs,
    places=_PLACES,
    former={"lint": _PLACES["check"], "resume": _PLACES["undrain"]},
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 the parent cannot be"
    " reached, 4 not converged, 5 nothing is desired yet (status --check).",
)
@click.version_option(haptera.__version__, prog_name="haptera")
@click.option(
    "--client",
    "client_file",
    type=click.Path(path_type=Path),
    help="The client file; default $HAPTERA_CLIENT, or .haptera/client.json here or above.",
)
@click.pass_context
def cli(ctx: click.Context, client_file: Path | None) -> None:
    """Declare what every machine and service should be; see what it is, and why."""
    ctx.obj = client_file


def the_client(ctx: click.Context) -> Client:
    """The client that this call speaks by.

    Raises:
        HapteraError: there is no client file, or it cannot be read.
    """
    return client_of(ctx, the_access(ctx))


def the_access(ctx: click.Context) -> Access:
    """Whom this call asks, and as whom.

    Raises:
        HapteraError: there is no client file, or it cannot be read.
    """
    found = find(ctx.obj)
    if found.warning is not None:
        say(f"warning: {found.warning}", err=True, fg="yellow")
    return found.access


def client_of(ctx: click.Context, access: Access) -> Client:
    """A client that tells a person where an answer takes long; closed when the call ends."""
    text = f"waiting for {access.url}, for up to {ANSWER_WITHIN_S:.0f} s"
    return ctx.with_resource(Client(access, waiting=lambda: say(text, err=True)))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    if "_HAPTERA_COMPLETE" in os.environ:
        from haptera.cli.input.bash import take_over_bash

        take_over_bash()
    try:
        code = cli.main(arguments, "haptera", standalone_mode=False, color=colours())
    except click.NoSuchOption as error:
        explained(error).show()
        return USAGE
    except click.ClickException as error:
        error.show()
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        _write_no_more()  # Nobody reads on.
        return REFUSED
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        _write_no_more()
        what = f"the answer cannot be written: {error.strerror}"
        print_error(
            HapteraError(
                what,
                where="standard output",
                do="make room, then ask again",
                code=Code.FILE_UNWRITABLE,
            )
        )
        return REFUSED
    return code if isinstance(code, int) else OK


def _write_no_more() -> None:
    """Have Python not complain once more when it flushes at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
