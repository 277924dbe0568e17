"""A Slurm as its own commands know it: how nodes stand, which jobs they have; drain and resume."""

import asyncio
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from haptera.kinds.slurm import name
from haptera.modules.slurm.commands import (
    SlurmCommands,
    SlurmMissingError,
    SlurmRefusedError,
)
from haptera.modules.slurm.shapes import SlurmNode, nodes_in
from haptera.modules.slurm.standing import (
    HARMLESS,
    MENDABLE,
    NOT_RESPONDING,
    SILENT,
    reason_of,
)
from haptera.sdk import CodeFile, ForeignError, HapteraError, Refused, Target, expand

# A node that is given up more often than this is not well.
MENDS_MAX: Final = 3
MENDS_WITHIN_NS: Final = 3_600 * 10**9
# A gate may take no longer.
COMMAND_S_MAX: Final = 1.8
# Of all states, those in which a job has nodes.
HAVE_NODES: Final = "running,suspended,completing,configuring,resizing,stopped,signaling,stage_out"
# Of the jobs that are waited for, so many are named.
JOBS_SHOWN_MAX: Final = 3

# A drain is read, then written: the gate and a step must not do so at once with one node.
_turns: Final[defaultdict[str, asyncio.Lock]] = defaultdict(asyncio.Lock)
# When each node was mended, in ns of CLOCK_BOOTTIME.
_mended: Final[defaultdict[str, list[int]]] = defaultdict(list)


@dataclass(frozen=True, slots=True)
class SlurmSettings:
    """`conf` is Slurm's configuration, where it is not at its usual place."""

    conf: CodeFile | None = None


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

    async def drain(self, why: str, *, no_more: str | None = None) -> None:
        """Let no more jobs begin, and say why; what somebody else drains stays as it is."""
        async with _turns[self.node]:
            one = (await self.own()).standing
            if one.claims is None:
                return
            claims = (one.claims - {no_more}) | {why}
            if claims != one.claims:
                await self._drain(reason_of(claims, one.before))

    async def resume(self, *whys: str) -> None:
        """Let jobs begin again, unless there is another reason to drain it."""
        async with _turns[self.node]:
            node = await self.own()
            claims, before = node.standing.claims, node.standing.before
            if claims is None or claims.isdisjoint(whys):
                return
            if rest := claims - {*whys}:
                await self._drain(reason_of(rest, before))
                return
            # Given up meanwhile by Slurm itself: a person would have had to give a reason.
            if "DOWN" in node.states and not before:
                before = NOT_RESPONDING
            # Not `resume`, which would take a node for up that Slurm has given up.
            await self._update("state=undrain", *([f"reason={before}"] if before else []))

    async def mend(self) -> None:
        """Take back a node that Slurm gave up, if it answers again.

        Raises:
            Refused: the cause is not gone, is not known, or comes back too often.
        """
        async with _turns[self.node]:
            node = await self.own()
            others = node.states - HARMLESS
            if others != {"DOWN"} or node.reason not in MENDABLE:
                said = ", ".join([*sorted(others - {"DOWN"}), *([node.reason] * bool(node.reason))])
                raise Refused(f"Slurm gave it up: {said or 'for no reason that it tells'}")
            if SILENT in node.states:
                raise Refused("Slurm gave it up, and its slurmd does not answer")
            now = self.target.now()
            lately = [one for one in _mended[self.node] if now - one < MENDS_WITHIN_NS]
            if len(lately) >= MENDS_MAX:
                raise Refused(f"Slurm gave it up {MENDS_MAX + 1} times within an hour")
            _mended[self.node] = [*lately, now]
            await self._update("state=resume")

    async def jobs(self) -> list[str]:
        """All jobs that have any of it, as people know them; those that begin or end among them."""
        nodes = f"--nodelist={self.node}"
        told = await self._commands.run(
            "squeue", "--all", "--noheader", "--format=%i", nodes, f"--states={HAVE_NODES}"
        )
        return told.decode().split()

    async def _drain(self, reason: str) -> None:
        await self._update("state=drain", f"reason={reason}")

    async def _update(self, *words: str) -> None:
        try:
            await self._commands.run("scontrol", "update", f"nodename={self.node}", *words)
        except SlurmRefusedError as error:
            raise Refused(str(error)) from error


async def listed(commands: SlurmCommands) -> dict[str, SlurmNode]:
    """All nodes of a Slurm, by their names there.

    Raises:
        SlurmAwayError: its controller does not answer.
        ForeignError: it answers in a shape that is not known.
    """
    nodes = await _nodes(commands)
    # A suspended job has no CPUs, and goes on where it is.
    told = await commands.run("squeue", "--all", "--noheader", "--states=suspended", "--format=%N")
    suspended: set[str] = set()
    for line in told.decode(errors="replace").splitlines():
        with suppress(HapteraError):  # What is no list of hosts names none.
            suspended.update(expand(line))
    return {
        name: replace(one, has_jobs=True) if name in suspended else one
        for name, one in nodes.items()
    }


async def _nodes(commands: SlurmCommands) -> dict[str, SlurmNode]:
    """By scontrol, which lists nodes in each version that has it; sinfo lists rows in some."""
    try:
        told = await commands.run("scontrol", "--all", "--json", "show", "nodes")
        return nodes_in("scontrol", told)
    except (ForeignError, SlurmMissingError, SlurmRefusedError):
        # Slurm 22.05 and older have no scontrol --json.
        return nodes_in(
            "sinfo", await commands.run("sinfo", "--all", "--Node", "--exact", "--json")
        )


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
