"""The module `cpufreq`: the profile of a node's processors, by the files of its kernel."""

from haptera.kinds import node
from haptera.kinds.node import Agent, PowerProfile
from haptera.modules.cpufreq.policies import CpufreqSettings, Processors
from haptera.sdk import SELF, Module, Privilege

WITHIN_S = 10

module = Module(
    "cpufreq",
    connect=Processors,
    context=SELF,
    settings=CpufreqSettings,
    needs=(Privilege.ROOT,),
    # The kernel's settings, wherever `root` says they are.
    writes=("/",),
)
profile = module.serves(node.power_profile)


@profile.look(
    every_s=10,
    within_s=WITHIN_S,
    outcomes=tuple(one for one in PowerProfile if one is not PowerProfile.UNKNOWN),
    requires={node.agent: Agent.UP},
)
def look_profile(processors: Processors) -> PowerProfile:
    processors.target.note(processors.words)
    return processors.profile


def _step(to: PowerProfile) -> None:
    """Declare the way from any other profile; nothing that runs is disturbed by it."""

    def change(processors: Processors) -> None:
        processors.set(to)

    change.__name__ = f"set_{to}"
    source = tuple(one for one in PowerProfile if one not in (PowerProfile.UNKNOWN, to))
    profile.step(source, to, within_s=WITHIN_S, requires={node.agent: Agent.UP})(change)


for _one in (PowerProfile.PERFORMANCE, PowerProfile.BALANCED, PowerProfile.POWERSAVE):
    _step(_one)
