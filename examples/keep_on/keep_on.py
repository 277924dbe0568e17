"""Keeps so many of some nodes on; one that is stuck is replaced by a spare, where there is one."""

from dataclasses import dataclass

from haptera.sdk import Cluster, Condition, Controller


@dataclass(frozen=True)
class Settings:
    """Which nodes (a node-set), and how many of them."""

    nodes: str
    count: int


controller = Controller("keep-on", settings=Settings)


@controller.run
async def keep_on(cluster: Cluster[Settings]) -> None:
    stuck: set[str] = set()
    async for changes in cluster.watch(kinds=["node"], select=f"node:{cluster.settings.nodes}"):
        nodes = {name: node for name, node in changes.now.items() if cluster.may(node, "power")}
        stuck |= {name for name, node in nodes.items() if node.condition is Condition.STUCK}
        chosen = [name for name, node in nodes.items() if "power" in node.desired]
        # Sorted stably: who is chosen stays so, unless it is stuck and another is not.
        best = sorted(dict.fromkeys([*chosen, *nodes]), key=lambda name: name in stuck)
        chosen = best[: cluster.settings.count]
        await cluster.write({name: {"power": "on" if name in chosen else None} for name in nodes})
