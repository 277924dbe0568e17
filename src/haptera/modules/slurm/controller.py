"""A Slurm as its own commands know it: how nodes stand, which jobs they have; drain and resume."""

import asyncio
import os
from dataclasses import dataclass
from typing import Final

import msgspec

from haptera.kinds.slurm import SlurmState, name
from haptera.sdk import HapteraError, Refused, Target

# What haptera drains it says so of; what bears another reason is another's, and stays drained.
REASON: Final = "haptera: to be disturbed once its jobs have ended"
# Slurm's commands wait for its controller by themselves, for longer than a gate may take.
COMMAND_S_MAX: Final = 1.8
WORDS_MAX: Final = 300
# Of the jobs that are waited for, so many are named.
JOBS_SHOWN_MAX: Final = 3
PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
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
        self._environment = {"PATH": os.environ.get("PATH", PATH), "LC_ALL": "C.UTF-8"}
        if settings.conf is not None:
            self._environment["SLURM_CONF"] = settings.conf

    async def nodes(self) -> dict[str, SlurmNode]:
        """All nodes of this Slurm, by one request.

        Raises:
            HapteraError: its controller does not answer. Nothing is known then, of no node.
        """
        told = await self._run("sinfo", "--all", "--json")
        try:
            listing = msgspec.json.decode(told, type=_Listing)
        except msgspec.DecodeError as error:
            raise HapteraError(f"sinfo did not return a list of nodes: {error}") from error
        # Without its controller sinfo succeeds, with an error and without nodes.
        if listing.errors or not listing.nodes:
            raise HapteraError("slurmctld does not answer", do="see whether it runs")
        return {one.name: one for one in listing.nodes}

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
        told = await self._run("squeue", "--all", "--noheader", "--format=%A", nodes, states)
        return told.decode().split()

    async def _update(self, *words: str) -> None:
        await self._run("scontrol", "update", f"nodename={self.node}", *words)

    async def _run(self, *command: str) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment,
            )
        except OSError as error:
            do = "install slurm-client on the parent"
            raise HapteraError(f"{command[0]}: {error.strerror}", do=do) from error
        try:
            async with asyncio.timeout(COMMAND_S_MAX):
                out, wrong = await process.communicate()
        except TimeoutError as error:
            what = f"{command[0]} does not answer within {COMMAND_S_MAX:g} s"
            raise HapteraError(what, do="see whether slurmctld runs") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            text = " ".join(wrong.decode(errors="replace").split())[:WORDS_MAX]
            raise Refused(f"{command[0]}: {text}")
        return out


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
