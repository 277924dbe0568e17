"""A virtual node's chassis: holds its BMC and, while powered on, all that runs on the node.

It is not part of the node that it holds: whatever runs there, however it forked, descends from
the chassis, so that cutting the power ends all of it.
"""

import os
import select
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.lab import init, tree
from haptera.lab.bmc import BmcConfig, run_bmc
from haptera.lab.init import InitConfig
from haptera.lab.orders import MESSAGE_BYTES_MAX, BmcFaults, Notice, Order

BMC_RESTART_MS: Final = 200


class ChassisConfig(msgspec.Struct, frozen=True):
    """One node: how its BMC behaves and where that writes, and what its init runs."""

    name: str
    commands: str
    faults: BmcFaults
    log: str
    init: InitConfig


def chassis_process(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Hold one node until killed: a fork target, given the BMC's listening socket."""
    config = msgspec.convert(arguments, ChassisConfig)
    tree.rename(f"chassis {config.name}")
    tree.leave_terminal()
    tree.adopt_orphans()
    init.redirect(Path(config.log))
    _Chassis(config, descriptors[0]).run()


class _Chassis:
    """Descriptors are plain numbers here: a fork closes them without Python's knowledge."""

    def __init__(self, config: ChassisConfig, listener: int) -> None:
        self._config = config
        self._listener = listener
        self._bmc = 0
        self._control = -1
        self._init: int | None = None  # a pidfd, while powered on

    def run(self) -> None:
        self._cut_power()  # A node is off at first, whatever its files say of an earlier lab.
        while True:
            ended = self._start_bmc()
            self._notify(None)
            while not self._step(ended):
                pass
            os.waitpid(self._bmc, 0)
            os.close(ended)
            os.close(self._control)
            select.select((), (), (), BMC_RESTART_MS / 1000)

    def _step(self, ended: int) -> bool:
        """Do what comes next; tell whether the BMC has ended."""
        watched = [ended, self._control, *([] if self._init is None else [self._init])]
        ready, _, _ = select.select(watched, (), ())
        if ended in ready:
            return True
        if self._init in ready:
            self._cut_power()
            self._notify(None)
        elif data := os.read(self._control, MESSAGE_BYTES_MAX):
            self._obey(msgspec.json.decode(data, type=Order))
        return False

    def _obey(self, order: Order) -> None:
        if order.power == "off":
            self._cut_power()
        elif self._init is None:
            self._boot(None if order.boot is None else msgspec.json.encode(order.boot))
        self._notify(order.command)

    def _boot(self, secret: bytes | None) -> None:
        def run() -> None:
            tree.own_mounts()
            init.run_init(self._config.init, secret)

        pid = tree.fork(run, ())
        self._init = os.pidfd_open(pid)

    def _cut_power(self) -> None:
        """End all that runs on the node: all descendants of this process but the BMC."""
        tree.end_descendants(spare=(self._bmc,))
        if self._init is not None:
            os.close(self._init)
            self._init = None
        for file in (self._config.init.pid_file, self._config.init.init_pid_file):
            Path(file).unlink(missing_ok=True)

    def _notify(self, command: str | None) -> None:
        notice = Notice("off" if self._init is None else "on", command)
        with suppress(BrokenPipeError, ConnectionResetError):  # the BMC ended: seen next
            os.write(self._control, msgspec.json.encode(notice))

    def _start_bmc(self) -> int:
        """Start a BMC; return the descriptor that becomes readable when it ends."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control, end = ours.detach(), theirs.detach()
        config = BmcConfig(Path(self._config.commands), self._config.faults)

        def run() -> None:
            tree.rename(f"bmc {self._config.name}")
            listener = socket.socket(fileno=self._listener)
            run_bmc(config, listener, socket.socket(fileno=end))

        self._bmc = tree.fork(run, (self._listener, end))
        os.close(end)
        return os.pidfd_open(self._bmc)
