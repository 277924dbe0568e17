"""The two versions of a group: its own replicas, and those of a trial beside them; pure.

Each is placed, changed and ended for itself, so that a trial takes neither room nor budget from the
group. One of them contends for the lead.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from haptera.controllers.group_views import is_trial, rank_of, ranks_of
from haptera.controllers.handover import DOWN_DEFAULT
from haptera.controllers.leadership import Contender
from haptera.controllers.writes import Patch
from haptera.kinds import replica
from haptera.kinds.group import TRIAL_RANK_MIN, TRIALS_MAX, GroupVersion, parse_dimensions
from haptera.sdk import EntityView

# The rank and the node of each replica that holds a lease which counts.
Leading = Collection[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Version:
    """Replicas that run one version: their ranks, and what they are told as no others are.

    They are kept apart by `dimensions`, and at most `down` of them may be down at once.
    """

    ranks: range
    dimensions: tuple[str, ...]
    down: int
    wish: Patch
    prefix: str = ""

    def words(self, placed: str, held: str) -> str:
        """Its condition in words; nothing where there is no trial."""
        if self.prefix and not self.ranks:
            return ""
        return self.prefix + "; ".join(filter(None, [placed, held]))


def versions_of(
    view: EntityView, told: Patch, leading: Leading, wall_s: float
) -> tuple[Version, Version]:
    """The group's own version and its trial's, which may have no ranks; `told` is for both."""
    down = view.desired_value("down")
    dimensions = parse_dimensions(str(view.desired_value("apart") or ""))
    until = own_until(view)
    over = until is not None and until <= wall_s and any(is_trial(rank) for rank, _ in leading)
    ranks = range(0) if over else ranks_of(view)
    own = Version(ranks, dimensions, DOWN_DEFAULT if down is None else int(down), told)
    command = view.desired_value("trial")
    count = 0 if command is None else int(view.desired_value("trials") or 1)
    wish = {**told, "command": command, replica.voice.name: replica.TRIAL}
    wish[replica.compare.name] = view.desired_value("compare")
    ranks = range(TRIAL_RANK_MIN, TRIAL_RANK_MIN + count)
    return own, Version(ranks, (), TRIALS_MAX, wish, "trial: ")


def own_until(view: EntityView) -> int | None:
    """When the group's own replicas end beside a trial that leads; None: they stay."""
    until = view.desired_value("own_until")
    promoted = view.desired_value("version") == GroupVersion.TRIAL
    return int(until) if promoted and until is not None else None


def outlasting(
    trial: Version, own: Version, replicas: Iterable[EntityView], leading: Leading
) -> list[EntityView]:
    """Of a trial that is not wanted any more: who leads, until one of the group's own can."""
    if trial.ranks or not own.ranks:
        return []
    return [one for one in replicas if is_trial(rank_of(one)) and is_leading(one, leading)]


def is_leading(one: EntityView, leading: Leading) -> bool:
    """True if this replica is one that leads."""
    return (rank_of(one), str(one.node)) in leading


def contending(
    view: EntityView, members: Mapping[int, Contender], leading: Leading
) -> dict[int, Contender]:
    """The candidates: the version in force; the other only where the group would have no leader.

    The group's own steps in where no replica of the trial runs. A trial that is not in force
    only goes on leading until one of the others runs.
    """
    own = {rank: one for rank, one in members.items() if not is_trial(rank)}
    trial = {rank: one for rank, one in members.items() if is_trial(rank)}
    holds = any((rank, one.node) in leading and not one.stopped for rank, one in trial.items())
    if view.desired_value("version") == GroupVersion.TRIAL:
        return trial if holds or _runs(trial) else own
    return trial if holds and not _runs(own) else own


def _runs(members: Mapping[int, Contender]) -> bool:
    return any(one.running_ms is not None for one in members.values())
