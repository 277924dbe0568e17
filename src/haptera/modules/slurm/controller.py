"""A Slurm as its own commands know it: how nodes stand, which jobs they have; drain and resume."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

import msgspec

from haptera.kinds.slurm import SlurmState, SlurmUse, name
from haptera.modules.slurm.commands import SlurmAwayError, SlurmCommands, SlurmRefusedError
from haptera.sdk import HapteraError, Refused, Target

# What haptera drains it says so of; what bears another reason is another's, and stays drained.
BY: Final = "haptera: "
HELD: Final = "to be disturbed once its jobs have ended"
DESIRED: Final = "drained as desired"
# Why Slurm gives a node up that is well again once its slurmd answers.
MENDABLE: Final = frozenset(
    ("Node unexpectedly rebooted", "Not responding", "ResumeTimeout reached")
)
# A node that is given up more often than this is not well.
MENDS_MAX: Final = 3
MENDS_WITHIN_NS: Final = 3_600 * 10**9
# A gate may take no longer.
COMMAND_S_MAX: Final = 1.8
# Of the jobs that are waited for, so many are named.
JOBS_SHOWN_MAX: Final = 3
GONE: Final = frozenset(("down", "error", "future", "unknown"))
DRAIN: Final = "DRAIN"
SILENT: Final = "NOT_RESPONDING"

# A drain is read, then written: the gate and a step must not do so at once with one node.
_turns: Final[defaultdict[str, asyncio.Lock]] = defaultdict(asyncio.Lock)
# When each node was mended, in ns of CLOCK_BOOTTIME.
_mended: Final[defaultdict[str, list[int]]] = defaultdict(list)


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
        if self.drains:
            return SlurmState.DRAINING if self.has_jobs else SlurmState.DRAINED
        return SlurmState.ALLOCATED if self.has_jobs else SlurmState.IDLE

    @property
    def use(self) -> SlurmUse:
        """Whether it may have jobs, but for what haptera itself is about to disturb."""
        if self.state in GONE:
            return SlurmUse.DOWN
        if not self.drains or self.claims == frozenset((HELD,)):
            return SlurmUse.OPEN
        return SlurmUse.DRAINING if self.has_jobs else SlurmUse.DRAINED

    @property
    def has_jobs(self) -> bool:
        return self.alloc_cpus > 0 or "COMPLETING" in self.state_flags

    @property
    def claims(self) -> frozenset[str] | None:
        """Why haptera drains it; None if somebody else does."""
        if not self.drains:
            return frozenset()
        known = frozenset(self.reason.removeprefix(BY).split(", "))
        ours = self.reason.startswith(BY) and known <= {HELD, DESIRED}
        return known if ours else None


class _Listing(msgspec.Struct, frozen=True):
    nodes: list[SlurmNode]
    errors: list[dict[str, object]] = []


class SlurmController:
    """The Slurm that gives one node its jobs, under the name that it has there."""

    def __init__(self, target: Target) -> None:
        settings: SlurmSettings = target.settings
        self.node = target.attributes.get(name.name) or target.name
        self.target = target
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

    async def drain(self, why: str) -> None:
        """Let no more jobs begin, and say why; what somebody else drains stays as it is."""
        async with _turns[self.node]:
            claims = (await self.own()).claims
            if claims is not None and why not in claims:
                await self._drain(claims | {why})

    async def resume(self, why: str) -> None:
        """Let jobs begin again, unless there is another reason to drain it."""
        async with _turns[self.node]:
            claims = (await self.own()).claims
            if claims is None or why not in claims:
                return
            if rest := claims - {why}:
                await self._drain(rest)
            else:
                # Not `resume`, which would take a node for up that Slurm has given up.
                await self._update("state=undrain")

    async def mend(self) -> None:
        """Take back a node that Slurm gave up, if it answers again.

        Raises:
            Refused: the cause is not gone, is not known, or comes back too often.
        """
        async with _turns[self.node]:
            node = await self.own()
            if node.state != "down" or node.drains or node.reason not in MENDABLE:
                raise Refused(f"Slurm gave it up: {node.reason or 'for no reason that it tells'}")
            if SILENT in node.state_flags:
                raise Refused("Slurm gave it up, and its slurmd does not answer")
            now = self.target.now()
            lately = [one for one in _mended[self.node] if now - one < MENDS_WITHIN_NS]
            if len(lately) >= MENDS_MAX:
                raise Refused(f"Slurm gave it up {MENDS_MAX + 1} times within an hour")
            _mended[self.node] = [*lately, now]
            await self._update("state=resume")

    async def jobs(self) -> list[str]:
        """The numbers of all jobs that have any of it, those that begin or end now among them."""
        states = "--states=running,completing,suspended,configuring,stopped,signaling,stage_out"
        nodes = f"--nodelist={self.node}"
        told = await self._commands.run(
            "squeue", "--all", "--noheader", "--format=%A", nodes, states
        )
        return told.decode().split()

    async def _drain(self, claims: frozenset[str]) -> None:
        await self._update("state=drain", f"reason={BY}{', '.join(sorted(claims))}")

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
