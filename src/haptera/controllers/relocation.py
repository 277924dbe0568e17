"""Ranks that do not come to run where they are: each is tried elsewhere, a few times; pure.

A replica that was given up stays declared, and stopped: it stands for a node on which its rank was
tried in vain. So nothing else has to be remembered, and people see where that was.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from haptera.controllers.group_views import rank_of, runs_ms
from haptera.kinds.service import Run
from haptera.model.policy import is_given_up
from haptera.sdk import Condition, EntityView

# For whoever has run for so long where it is, nothing was in vain.
FORGET_AFTER_MS: Final = 600_000


@dataclass(frozen=True, slots=True)
class Relocation:
    """The replicas that count, and those that are given up now; none is placed on `barred` nodes.

    The ranks that `failed` are tried nowhere else: by the nodes where that was in vain.
    """

    counting: Sequence[EntityView]
    given_up: tuple[str, ...] = ()
    barred: Collection[str] = ()
    failed: Mapping[int, Sequence[str]] = field(default_factory=dict)


def relocate(
    replicas: Sequence[EntityView],
    ranks: Collection[int],
    hosts: Iterable[str],
    command: object,
    moves_max: int,
) -> Relocation:
    """Give up one replica that is stuck, if there is another node; `replicas` are as placed."""
    newest = {rank_of(one): one for one in replicas if rank_of(one) in ranks}
    tried: dict[int, list[EntityView]] = {rank: [] for rank in newest}
    for one in replicas if moves_max else ():
        last = newest.get(rank_of(one), one)
        settled = (runs_ms(last) or 0) >= FORGET_AFTER_MS
        if one is not last and not settled and _is_given_up(one, command):
            tried[rank_of(one)].append(one)
    left = [one for some in tried.values() for one in some]
    taken = {str(one.node) for one in newest.values()}
    barred = {str(one.node) for one in left} - taken
    stuck = [rank for rank in sorted(newest) if _is_stuck(newest[rank], command)]
    more = [rank for rank in stuck if len(tried[rank]) < moves_max]
    moving = [newest[rank] for rank in more[:1] if not taken.union(barred).issuperset(hosts)]
    failed = [rank for rank in stuck if moves_max and (rank not in more or not moving)]
    return Relocation(
        [one for one in replicas if one not in [*left, *moving]],
        tuple(one.entity for one in moving),
        barred.union(str(one.node) for one in moving),
        {rank: [str(one.node) for one in (*tried[rank], newest[rank])] for rank in failed},
    )


def _is_given_up(one: EntityView, command: object) -> bool:
    """True of a replica that has ended because it did not come to run, with this command."""
    return one.desired_value("run") == Run.STOPPED and one.desired_value("command") == command


def _is_stuck(one: EntityView, command: object) -> bool:
    """True of a replica that is to run, with this command, and does not come to.

    One that a person wants to run there is left to them.
    """
    run, ours = one.desired.get("run"), one.desired["placement"].owner
    wanted = run is not None and (run.value, run.owner) == (Run.RUNNING, ours)
    same = one.desired_value("command") == command
    return wanted and same and one.condition is Condition.STUCK and is_given_up(one.why)
