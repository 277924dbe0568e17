"""`haptera fence`: run a command only while its replica leads, or only if no later epoch acted."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from haptera.app import Fence, GroupReplica, NotLeaderError, StaleEpochError
from haptera.app.whole import WholeCommand
from haptera.cli.verb import unwatched
from haptera.model.errors import HapteraError

EPOCH: Final = "HAPTERA_EPOCH"
LOOK_EVERY_S: Final = 0.02
# As shells have a command that was ended by a signal.
SIGNALLED: Final = 128


@click.group("fence")
def fence() -> None:
    """Run a command only while this replica is the leader."""


@fence.command("run", context_settings={"allow_interspersed_args": False})
@unwatched("it ends with its command; `haptera get --watch lease` shows who leads")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(command: tuple[str, ...]) -> int:
    r"""Wait until this replica is the leader, then run COMMAND while it stays the leader.

    To be used as the command of a group, or below it. COMMAND finds its epoch in HAPTERA_EPOCH.
    Where the lease is taken back or about to run out, COMMAND is killed with all that it started,
    whatever process groups and sessions that made, and with it the rest of the replica's session;
    the replica's keeper starts it again, to stand by. What COMMAND leaves behind when it ends
    is killed, too. Exits as COMMAND does.

    \b
    Examples:
      haptera fence run ./serve-as-leader
      haptera fence run sh -c 'echo "epoch $HAPTERA_EPOCH"; ./write-orders'
    """
    replica = _replica()
    while True:
        replica.await_lead()
        try:
            with replica.leading() as epoch:
                return _run(replica, epoch, command)
        except NotLeaderError:
            continue  # between the two looks it was taken back


@fence.command("check", context_settings={"allow_interspersed_args": False})
@unwatched("it ends with its command")
@click.option(
    "--epoch",
    type=click.IntRange(min=0),
    envvar=EPOCH,
    show_envvar=True,
    help="The epoch of COMMAND.",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def check(epoch: int | None, file: Path, command: tuple[str, ...]) -> int:
    r"""Run COMMAND exclusively, unless a later epoch has already acted here.

    FILE keeps the highest epoch, and is locked until COMMAND has ended and all that it started, of
    which what is left then is killed; it is made where there is none. It belongs beside what
    COMMAND changes. Exits as COMMAND does; with 1, COMMAND not run, where the epoch is over.

    \b
    Examples:
      haptera fence check orders.epoch ./write-orders
      haptera fence check --epoch 7 orders.epoch ./write-orders
    """
    if epoch is None:
        raise HapteraError("the epoch is not given", do=f"give --epoch, or set {EPOCH}")
    try:
        with Fence(file).passed(epoch):
            return _carry_out(command, epoch, lambda: True)
    except StaleEpochError as error:
        raise HapteraError(str(error), where=str(file), do="let the later leader act") from None
    except ValueError:
        what, do = "it holds something else than an epoch", "name a file of its own"
        raise HapteraError(what, where=str(file), do=do) from None
    except OSError as error:
        what, do = f"cannot be used: {error.strerror}", "name a file beside what COMMAND changes"
        raise HapteraError(what, where=str(file), do=do) from None


def _run(replica: GroupReplica, epoch: int, command: tuple[str, ...]) -> int:
    def leads() -> bool:
        return replica.epoch() == epoch

    return _carry_out(command, epoch, leads)


def _carry_out(command: tuple[str, ...], epoch: int, may_act: Callable[[], bool]) -> int:
    """What this process exits with once the command has ended, in its own way where it is asked."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    # A terminal sends it to the command as well.
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        whole = WholeCommand.start(command, {**os.environ, EPOCH: str(epoch)})
    except OSError as error:
        raise HapteraError(f"cannot be run: {error.strerror}", where=command[0]) from None
    while (code := whole.wait(LOOK_EVERY_S)) is None:
        if not may_act():
            # With all that it started: nothing of it may act a moment longer.
            whole.kill()
        if asked:
            whole.ask_to_end()
            asked.clear()
    return _status(code)


def _status(code: int) -> int:
    return code if code >= 0 else SIGNALLED - code


def _replica() -> GroupReplica:
    try:
        return GroupReplica.of_environment()
    except KeyError as error:
        raise HapteraError(
            f"{error.args[0]} is not set: this is not a replica of a group",
            do="make it the command of a group, group:NAME in a site file",
        ) from None
