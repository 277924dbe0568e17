"""`haptera job`: run a command so that its node is busy, and so left alone, while it lives."""

import os
import signal
from pathlib import Path
from typing import Final, NoReturn

import click

from haptera.cli.output.printing import print_error
from haptera.cli.verb import unwatched
from haptera.keeping.gate import CLOSED as SHUT
from haptera.keeping.gate import OPEN, enter, gate_path
from haptera.model.errors import HapteraError

# As EX_TEMPFAIL of sysexits.h: nothing is wrong, come back later.
CLOSED: Final = 75
# As shells have them.
NOT_RUN: Final = 126
NOT_FOUND: Final = 127
# Python ignores these; a command expects them to end it, as anywhere else.
IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)


@click.command(context_settings={"allow_interspersed_args": False})
@unwatched("it ends with its command; `haptera get --watch node:NAME` shows whether a node is busy")
@click.option(
    "--gate",
    type=click.Path(path_type=Path),
    envvar="HAPTERA_JOBS",
    default=gate_path(Path("/run/haptera")),
    show_default=True,
    show_envvar=True,
    help="The node's gate; services find it in HAPTERA_JOBS.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def job(gate: Path, command: tuple[str, ...]) -> int:
    r"""Run COMMAND as a job: its node counts as busy until it ends.

    The exit code is that of COMMAND, or 75, without running it, if the node admits no jobs now.

    \b
    Examples:
      haptera job make -j8
      haptera job --gate /run/haptera/jobs sh -c 'sleep 60'
    """
    descriptor = _enter(gate)
    if descriptor is None:
        error = HapteraError("the node admits no jobs now", where=str(gate), do="come back later")
        print_error(error)
        return CLOSED
    try:
        _become(command, descriptor)
    except OSError as error:
        print_error(HapteraError(f"cannot be run: {error.strerror}", where=command[0]))
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUN


def _enter(gate: Path) -> int | None:
    try:
        descriptor = enter(gate)
    except OSError as error:
        raise HapteraError(
            f"the gate cannot be used: {error.strerror}",
            where=str(gate),
            do="run jobs as the user that runs the agent, or as root",
        ) from error
    if descriptor is None and not any((gate.parent.parent / one).is_dir() for one in (OPEN, SHUT)):
        do = "start the node's agent, or name the gate it keeps (--gate, HAPTERA_JOBS)"
        raise HapteraError("there is no job gate here", where=str(gate), do=do)
    return descriptor


def _become(command: tuple[str, ...], gate: int) -> NoReturn:
    """Become the command; whatever it starts keeps the gate, too."""
    os.set_inheritable(gate, True)
    for number in IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], command)
