"""A whole lab: a parent and its nodes, started, kept running and ended as one."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from haptera.lab import tree
from haptera.lab.bridge import PORT
from haptera.lab.chassis import ChassisConfig
from haptera.lab.cloud import LabCloud
from haptera.lab.init import InitConfig
from haptera.lab.layout import LabConfig, LabMachine, LabNode, parse_bmc
from haptera.lab.leftovers import MARK, clear_nodes, end_leftovers, note_started
from haptera.lab.machine import MachineConfig
from haptera.lab.machine_bmc import MachineBmcConfig
from haptera.lab.orders import BmcFaults
from haptera.lab.record import begin_anew
from haptera.lab.tree import LabProcess
from haptera.model.errors import Code, HapteraError
from haptera.modules import BUNDLED
from haptera.runtime.identity.lock import take
from haptera.runtime.identity.private import private_directory
from haptera.runtime.processes.forking import Child, ZygoteClient, exec_zygote

# How long a process of the lab's own stays down once it has died.
RESTART_S: Final = 0.2
BACKLOG: Final = 16
# A zygote that died is made anew; one that cannot fork is not going to by trying on.
ZYGOTES_TRIED_MAX: Final = 2


@dataclass(frozen=True, slots=True)
class KeptProcess:
    """One process that the lab keeps running."""

    what: str
    target: str
    arguments: dict[str, Any]
    descriptors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MadeNode:
    """A node that was made while the lab ran: what holds it."""

    what: str
    listener: socket.socket
    keeper: asyncio.Task[None]


async def run_lab(config: LabConfig) -> None:
    """Run a lab until it is interrupted or terminated; leave nothing running.

    Raises:
        HapteraError: another lab runs here, an address is in use…: nothing was started.
    """
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stopped.set)
    async with open_lab(config):
        await stopped.wait()


@asynccontextmanager
async def open_lab(config: LabConfig) -> AsyncIterator[None]:
    """A lab that runs for as long as the context lasts; see `run_lab`."""
    places = config.places
    for directory in (places.root, places.lab, places.parent, places.shared):
        private_directory(directory)
    lock = take(places.lab / "lab")
    try:
        end_leftovers(places, config.cluster)
        os.environ[MARK] = str(config.cluster)  # for what is started from now on
        with _listening(config.nodes) as listeners:
            async with _Lab(config).running(_kept(config, listeners)):
                yield
    finally:
        clear_nodes(places)
        lock.release()


class _Lab:
    """The processes that the lab itself keeps; whatever else comes to it has lost its owner."""

    def __init__(self, config: LabConfig) -> None:
        self._config = config
        self._zygote: ZygoteClient | None = None
        self._zygote_pid = 0
        self._pids: dict[str, int] = {}
        self._tasks: asyncio.TaskGroup
        self._made: dict[str, MadeNode] = {}

    def begin(self, node: LabNode) -> None:
        """Have a node more: its chassis is started, and kept."""
        listener = _listen(node)
        one = _chassis_kept(self._config, node, listener)
        keeper = self._tasks.create_task(self._keep(one, self._fork(one)))
        self._made[node.name] = MadeNode(one.what, listener, keeper)

    def end(self, node: LabNode) -> None:
        """Have it no more: all that runs on it ends with its chassis."""
        made = self._made.pop(node.name)
        made.keeper.cancel()
        made.listener.close()
        pid = self._pids.pop(made.what)
        tree.end_all(lambda: _tree_of(pid))
        self._end_strays()

    @asynccontextmanager
    async def running(self, kept: Sequence[KeptProcess]) -> AsyncIterator[None]:
        tree.adopt_orphans()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._end_strays)
        try:
            children = [self._fork(one) for one in kept]
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                keepers = [
                    tasks.create_task(self._keep(one, child))
                    for one, child in zip(kept, children, strict=True)
                ]
                if (faults := self._config.cloud) is not None:
                    net = self._config.parent_address.removesuffix(".0.1")
                    keepers.append(tasks.create_task(LabCloud(net, faults, self).serve()))
                yield
                for keeper in (*keepers, *(one.keeper for one in self._made.values())):
                    keeper.cancel()
        finally:
            loop.remove_signal_handler(signal.SIGCHLD)
            tree.end_descendants()

    async def _keep(self, one: KeptProcess, child: Child) -> None:
        """Start it again whenever it has died."""
        while True:
            try:
                await _readable(child.pidfd)
            finally:
                os.close(child.pidfd)
            self._end_strays()
            await asyncio.sleep(RESTART_S)
            child = self._fork(one)

    def _fork(self, one: KeptProcess) -> Child:
        """Waits for the zygote: the lab has nothing else to do meanwhile."""
        for _ in range(ZYGOTES_TRIED_MAX):
            if self._zygote is None:
                self._zygote = exec_zygote(_preload(self._config))
            try:
                return self._fork_from(self._zygote, one)
            except OSError:
                self._zygote.close()
                self._zygote = None
        raise HapteraError(f"{one.what} cannot be started", do="see the output of the zygote above")

    def _fork_from(self, zygote: ZygoteClient, one: KeptProcess) -> Child:
        # What it forks outlives it: a killed zygote must cost no node its power.
        child = zygote.fork(one.target, one.arguments, one.descriptors, survives=True)
        zygote.ended()  # Read, so that its socket never fills; the pidfd tells the same.
        self._pids[one.what] = child.pid
        note_started(self._config.places, one.what, child.pid)
        if (process := tree.read_process(child.pid)) is not None:
            self._zygote_pid = process.parent
        return child

    def _end_strays(self) -> None:
        """Kill what lost its owner: a chassis killed by hand leaves a node without power.

        Who embeds a lab may have children of its own. They share its session, which nothing that
        comes from a zygote ever does.
        """
        me, session = os.getpid(), os.getsid(0)
        own = [p.pid for p in tree.processes() if (p.parent, p.session) == (me, session)]
        tree.end_descendants(spare=(self._zygote_pid, *self._pids.values(), *own))


def _preload(config: LabConfig) -> list[str]:
    """What all processes of a lab need, imported once."""
    places = (*config.targets, *BUNDLED.values())
    return [
        "haptera.lab.chassis",
        "haptera.lab.machine",
        *sorted({place.partition(":")[0] for place in places}),
    ]


def _kept(config: LabConfig, listeners: Mapping[str, socket.socket]) -> list[KeptProcess]:
    nodes = [_chassis_kept(config, node, listeners[node.name]) for node in config.nodes]
    parent = KeptProcess(
        "parent", "haptera.lab.init:init_process", msgspec.to_builtins(_parent_init(config))
    )
    machines = [
        KeptProcess(
            f"machine {one.name}",
            "haptera.lab.machine:machine_process",
            msgspec.to_builtins(_machine(config, one, PORT.format(number))),
        )
        for number, one in enumerate(config.machines)
    ]
    return [parent, *nodes, *machines]


def _chassis_kept(config: LabConfig, node: LabNode, listener: socket.socket) -> KeptProcess:
    return KeptProcess(
        f"chassis {node.name}",
        "haptera.lab.chassis:chassis_process",
        msgspec.to_builtins(_chassis(config, node)),
        (listener.fileno(),),
    )


def _tree_of(pid: int) -> list[LabProcess]:
    """What descends from a process, and the process itself at last: it ends what it holds."""
    one = tree.read_process(pid)
    return [] if one is None or one.dead else [*tree.descendants([pid]), one]


def _machine(config: LabConfig, one: LabMachine, port: str) -> MachineConfig:
    host, bmc_port = parse_bmc(one.bmc, where=f"node {one.name}, bmc")
    places = config.places
    return MachineConfig(
        name=one.name,
        mac=one.mac,
        port=port,
        memory_mb=one.memory_mb,
        uefi=one.uefi,
        nic=one.nic,
        bmc=MachineBmcConfig(
            one.language,
            one.name,
            one.mac.replace(":", "").rjust(32, "a"),
            *(host, bmc_port, config.bmc_user, str(places.bmc_password)),
        ),
        directory=str(places.node(one.name)),
        log=str(places.lab / "lab.log"),
    )


def _parent_init(config: LabConfig) -> InitConfig:
    home = config.places.parent
    return InitConfig(
        name="parent",
        target=config.parent,
        arguments={
            "cluster": str(config.cluster),
            "directory": str(home),
            "address": config.parent_address,
            "client": str(config.places.client),
            **config.parent_arguments,
        },
        log=str(home / "serve.log"),
        pid_file=str(home / "parent.pid"),
        init_pid_file=str(home / "init.pid"),
    )


def _chassis(config: LabConfig, node: LabNode) -> ChassisConfig:
    home = private_directory(config.places.node(node.name))
    bmc = private_directory(home / "bmc")
    begin_anew(bmc / "commands.jsonl")
    (home / "address").write_text(f"{node.address}\n", encoding="ascii")
    (bmc / "address").write_text(f"{node.bmc}\n", encoding="ascii")
    return ChassisConfig(
        name=node.name,
        commands=str(bmc / "commands.jsonl"),
        faults=node.faults.over(BmcFaults(node.delay_ms, node.refuse)),
        log=str(config.places.lab / "lab.log"),
        init=InitConfig(
            name=node.name,
            target=config.agent,
            arguments={
                "cluster": str(config.cluster),
                "node": node.name,
                "directory": str(home / "run"),
                "address": node.address,
            },
            log=str(home / "agent.log"),
            pid_file=str(home / "agent.pid"),
            init_pid_file=str(home / "init.pid"),
            scratch=str(home / "run"),
            wait_ms=node.boot_ms,
        ),
    )


@contextmanager
def _listening(nodes: Sequence[LabNode]) -> Iterator[dict[str, socket.socket]]:
    """The sockets of all BMCs; a BMC that is started again goes on with its own."""
    with ExitStack() as stack:
        yield {node.name: stack.enter_context(_listen(node)) for node in nodes}


def _listen(node: LabNode) -> socket.socket:
    address = parse_bmc(node.bmc, where=f"node {node.name}, bmc")
    try:
        return socket.create_server(address, backlog=BACKLOG)
    except OSError as error:
        raise HapteraError(
            f"cannot listen: {error.strerror}",
            where=f"BMC of {node.name} at {node.bmc}",
            do="stop what uses it (ss -ltnp), or delete .haptera to begin with other addresses",
            code=Code.CANNOT_LISTEN,
        ) from error


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    seen = asyncio.Event()
    loop.add_reader(descriptor, seen.set)
    try:
        await seen.wait()
    finally:
        loop.remove_reader(descriptor)
