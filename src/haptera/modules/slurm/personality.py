"""The controller that gives jobs the image they ask for: `sbatch --constraint=image:NAME`."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from haptera.kinds import node, slurm, system
from haptera.kinds.slurm import SlurmState
from haptera.kinds.system import SystemRun
from haptera.modules.slurm.commands import SlurmAwayError, SlurmCommands
from haptera.modules.slurm.controller import listed
from haptera.modules.slurm.personalities import (
    PersonalityHost,
    PersonalityPolicy,
    wanted_images,
)
from haptera.modules.slurm.shapes import SlurmJob, SlurmNode, jobs_in
from haptera.sdk import (
    Applied,
    Cluster,
    CodeFile,
    Condition,
    Conflict,
    Controller,
    EntityView,
    ForeignError,
)

Views = Mapping[str, EntityView]

# What a job asks for and a node bears: this, and the name of an image.
PREFIX: Final = "image:"
TICK_S: Final = 3.0
# Slurm is asked no oftener than this, however much changes here.
REST_S: Final = 1.0
COMMAND_S_MAX: Final = 20.0
# An image that did not run on one node is not tried on the next one for so long.
REFUSED_S: Final = 1800.0
# In JSON, squeue lists jobs that have ended too, whatever states it is asked for.
PENDING: Final = "PENDING"
# Jobs that wait for nothing but nodes; held ones, and those that wait for others, do not count.
NEEDS_NODES: Final = frozenset(("None", "Priority", "ReqNodeNotAvail", "Resources"))


@dataclass(frozen=True)
class PersonalitySettings:
    """`system` is the name of the system that Slurm runs in; `conf` Slurm's configuration."""

    base: str
    limits: dict[str, int]
    idle_s: float = 600.0
    system: str = "compute"
    conf: CodeFile | None = None

    def __post_init__(self) -> None:
        if self.base in self.limits:
            raise ValueError(f"{self.base} is the base, which has no limit")
        if any(limit < 0 for limit in self.limits.values()):
            raise ValueError("a limit is a number of nodes")


@dataclass(slots=True)
class PersonalityMemory:
    """Since when nodes idle, and when images were last refused, as far as this process knows."""

    idle: dict[str, float] = field(default_factory=dict)
    refused: dict[str, float] = field(default_factory=dict)

    def learn(self, nodes: Mapping[str, SlurmNode], now: float) -> None:
        idle = [name for name, one in nodes.items() if one.standing.state is SlurmState.IDLE]
        self.idle = {name: self.idle.get(name, now) for name in idle}

    def untried(
        self, asked: Mapping[str, int], hosts: Iterable[PersonalityHost], now: float
    ) -> dict[str, int]:
        """What is asked for, without images that one of these nodes refuses, or did of late."""
        self.refused |= {one.desired: now for one in hosts if one.refused and one.desired}
        late = {image for image, at in self.refused.items() if now - at < REFUSED_S}
        return {image: count for image, count in asked.items() if image not in late}


controller = Controller("personality", settings=PersonalitySettings)


@controller.run
async def follow_jobs(cluster: Cluster[PersonalitySettings]) -> None:
    """Tell Slurm what runs where, and have run what its jobs ask for."""
    commands = SlurmCommands(cluster.settings.conf, COMMAND_S_MAX)
    memory = PersonalityMemory()
    async for changes in cluster.watch(kinds=(node.kind.name, system.kind.name), tick_s=TICK_S):
        # A Slurm that is away is shown by `slurm.state`. Another's write will be announced.
        with suppress(SlurmAwayError, ForeignError, Conflict):
            await _follow(cluster, commands, memory, changes.now)
        await asyncio.sleep(REST_S)


async def _follow(
    cluster: Cluster[PersonalitySettings],
    commands: SlurmCommands,
    memory: PersonalityMemory,
    views: Views,
) -> None:
    settings = cluster.settings
    now = asyncio.get_running_loop().time()
    nodes = await listed(commands)
    memory.learn(nodes, now)
    systems = {name: one for name, one in _systems(views, settings.system) if name in nodes}
    hosts = {name: _host(one, nodes[name], memory) for name, one in systems.items()}
    ours = {
        name: hosts[name] for name, one in systems.items() if cluster.may(one, system.image.name)
    }
    partitions = frozenset(each for name in ours for each in nodes[name].partitions)
    asked = asked_for(await _waiting(commands), settings.limits, partitions)
    asked = memory.untried(asked, ours.values(), now)
    policy = PersonalityPolicy(settings.base, settings.limits, settings.idle_s)
    wanted = wanted_images(policy, list(ours.values()), asked, now)
    for name, host in hosts.items():
        # Withdrawn first: from now on no job that asks for the old image begins there.
        await _publish(commands, nodes[name], None if host.system in wanted else host.runs)
    if wanted:
        await cluster.write({one: {system.image.name: to} for one, to in wanted.items()})


def asked_for(
    jobs: list[SlurmJob], limits: Mapping[str, int], partitions: frozenset[str]
) -> dict[str, int]:
    """How many nodes waiting jobs ask for, of each image; who asks for too many counts nothing."""
    asked: dict[str, int] = {}
    for job in jobs:
        # Of alternatives (`|`) and counts (`*`) nothing is known to be needed.
        words = job.features.split("&")
        image = next((one.removeprefix(PREFIX) for one in words if one.startswith(PREFIX)), "")
        fits = max(1, job.node_count) <= limits.get(image, 0)
        reaches = not partitions.isdisjoint(job.partition.split(","))
        waits = job.job_state == PENDING and job.state_reason in NEEDS_NODES
        if fits and reaches and waits:
            asked[image] = asked.get(image, 0) + max(1, job.node_count)
    return asked


def features_with(features: str, image: str | None) -> str:
    """A node's features with this image among them, and no other.

    >>> features_with("gpu,image:a", "b"), features_with("image:a", None)
    ('gpu,image:b', '')
    """
    others = [one for one in features.split(",") if one and not one.startswith(PREFIX)]
    return ",".join(others if image is None else [*others, PREFIX + image])


def _systems(views: Views, name: str) -> list[tuple[str, EntityView]]:
    """The systems of this name on Slurm's nodes, each with Slurm's name of its node."""
    on = {one.name: one for one in views.values() if one.kind == node.kind.name}
    return [
        (on[one.node].attributes.get(slurm.name.name) or one.node, one)
        for _, one in sorted(views.items())
        if one.kind == system.kind.name
        and one.name == name
        and one.node is not None
        and one.node in on
        and on[one.node].attributes.get(slurm.member.name) == slurm.MEMBER
    ]


def _host(view: EntityView, there: SlurmNode, memory: PersonalityMemory) -> PersonalityHost:
    held = view.desired_value(system.image.name)
    desired = None if held is None else str(held)
    applied = view.known_value(system.applied.name)
    runs = view.known_value(system.run.name) == SystemRun.RUNNING and applied == Applied.CURRENT
    return PersonalityHost(
        view.entity,
        desired,
        desired if runs else None,
        there.standing.state in (SlurmState.ALLOCATED, SlurmState.DRAINING),
        memory.idle.get(there.name),
        waits=applied == Applied.STALE and view.condition is Condition.WAITING,
        refused=view.known_value(system.refused.name) == Applied.CURRENT,
    )


async def _publish(commands: SlurmCommands, there: SlurmNode, image: str | None) -> None:
    features = features_with(there.active_features, image)
    if features != there.active_features or features != there.features:
        words = (f"availablefeatures={features}", f"activefeatures={features}")
        await commands.run("scontrol", "update", f"nodename={there.name}", *words)


async def _waiting(commands: SlurmCommands) -> list[SlurmJob]:
    return jobs_in("squeue", await commands.run("squeue", "--all", "--json"))
