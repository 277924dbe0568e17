"""A Slurm as its own commands know it: how nodes stand, which jobs they have; drain and resume."""

from dataclasses import dataclass
from typing import Final

import msgspec

from haptera.kinds.slurm import SlurmState, name
from haptera.modules.slurm.commands import SlurmAwayError, SlurmCommands, SlurmRefusedError
from haptera.sdk import HapteraError, Refused, Target

# What haptera drains it says so of; what bears another reason is another's, and stays drained.
REASON: Final = "haptera: to be disturbed once its jobs have ended"
# A gate may take no longer.
COMMAND_S_MAX: Final = 1.8
# Of the jobs that are waited for, so many are named.
JOBS_SHOWN_MAX: Final = 3
GONE: Final = frozenset(("down", "error", "future", "unknown"))
DRAIN: Final = "DRAIN"


@dataclass(frozen=True, slots=True)
class SlurmSettings:
    """`conf` is Slurm's configuration, where it is not at its usual place."""

    conf: str | None = None


class SlurmNode(msgspec.Struct, frozen=True):
    """One node as `sinfo --json` has it."""

    name: str
    state: str
    state_flags: list[str] = []
    reason: str = ""
    alloc_cpus: int = 0
    features: str = ""
    active_features: str = ""
    partitions: list[str] = []

    @property
    def drains(self) -> bool:
        """Whether no job begins on it."""
        return DRAIN in self.state_flags

    @property
    def seen(self) -> SlurmState:
        """How it stands: who is given up, runs nothing that Slurm knows of."""
        if self.state in GONE:
            return SlurmState.DOWN
        has_jobs = self.alloc_cpus > 0 or "COMPLETING" in self.state_flags
        if self.drains:
            return SlurmState.DRAINING if has_jobs else SlurmState.DRAINED
        return SlurmState.ALLOCATED if has_jobs else SlurmState.IDLE


class _Listing(msgspec.Struct, frozen=True):
    nodes: list[SlurmNode]
    errors: list[dict[str, object]] = []


class SlurmController:
    """The Slurm that gives one node its jobs, under the name that it has there."""

    def __init__(self, target: Target) -> None:
        settings: SlurmSettings = target.settings
        self.node = target.attributes.get(name.name) or target.name
        self._commands = SlurmCommands(settings.conf, COMMAND_S_MAX)

    async def nodes(self) -> dict[str, SlurmNode]:
        """All nodes of this Slurm, by one request.

        Raises:
            HapteraError: its controller does not answer. Nothing is known then, of no node.
        """
        return await listed(self._commands)

    async def own(self) -> SlurmNode:
        """This node.

        Raises:
            HapteraError: Slurm does not answer, or does not know it.
        """
        return found(await self.nodes(), self.node)

    async def drain(self) -> None:
        """Let no more jobs begin, and say whose wish that is; who drains already goes on so."""
        if not (await self.own()).drains:
            await self._update("state=drain", f"reason={REASON}")

    async def resume(self) -> None:
        """Let jobs begin again, unless somebody else has reason to drain it."""
        node = await self.own()
        if node.drains and node.reason == REASON:
            # Not `resume`, which would take a node for up that Slurm has given up.
            await self._update("state=undrain")

    async def jobs(self) -> list[str]:
        """The numbers of all jobs that have any of it, those that begin or end now among them."""
        states = "--states=running,completing,suspended,configuring,stopped,signaling,stage_out"
        nodes = f"--nodelist={self.node}"
        told = await self._commands.run(
            "squeue", "--all", "--noheader", "--format=%A", nodes, states
        )
        return told.decode().split()

    async def _update(self, *words: str) -> None:
        try:
            await self._commands.run("scontrol", "update", f"nodename={self.node}", *words)
        except SlurmRefusedError as error:
            raise Refused(str(error)) from error


async def listed(commands: SlurmCommands) -> dict[str, SlurmNode]:
    """All nodes of a Slurm, by their names there.

    Raises:
        SlurmAwayError: its controller does not answer.
    """
    told = await commands.run("sinfo", "--all", "--json")
    try:
        listing = msgspec.json.decode(told, type=_Listing)
    except msgspec.DecodeError as error:
        raise SlurmAwayError(f"sinfo did not return a list of nodes: {error}") from error
    # Without its controller sinfo succeeds, with an error and without nodes.
    if listing.errors or not listing.nodes:
        raise SlurmAwayError("slurmctld does not answer", do="check whether it runs")
    return {one.name: one for one in listing.nodes}


def found(nodes: dict[str, SlurmNode], name: str) -> SlurmNode:
    """The node of this name.

    Raises:
        HapteraError: Slurm does not know it.
    """
    if name not in nodes:
        raise HapteraError(
            f"Slurm knows no node {name}",
            do="give the node the attribute slurm.name, or add it to slurm.conf",
        )
    return nodes[name]
