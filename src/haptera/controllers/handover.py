"""Which replicas may end or be started anew now, so that few enough are down at once; pure.

A replica that has to leave its node goes on until its replacement runs. One that cannot be replaced
ends only where its group's budget has room, and so does one that something else is desired of.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# How many replicas of a group haptera itself may take down at once, where the group does not say.
DOWN_DEFAULT: Final = 1


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A replica that is there, wanted there or not.

    `gone`: nothing of it runs, as its node says, or its node has failed. `running`: it is known to
    run; `steady`: and to be as it is desired. `stuck`: it does not come to run. `outdated`:
    something else is to be desired of it. `must_leave`: its node is to be vacated. `silent`: its
    node has failed, and may come back with it running.
    """

    entity: str
    rank: int
    node: str
    gone: bool = False
    running: bool = False
    steady: bool = False
    stuck: bool = False
    outdated: bool = False
    must_leave: bool = False
    leads: bool = False
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Handover:
    """The replicas that end now, those that may be changed, and the ranks that wait for room."""

    ending: tuple[str, ...] = ()
    changing: tuple[str, ...] = ()
    waiting: tuple[int, ...] = ()


def hand_over(
    target: Mapping[int, str],
    ranks: Collection[int],
    incumbents: Sequence[Incumbent],
    down_max: int,
) -> Handover:
    """What may go on of what is wanted: each rank of `target` on its node, and nowhere else.

    A rank is down where none of its replicas is steady; no more than `down_max` ranks are taken
    down by this. Who leads comes last, so that it is handed on once.
    """
    down = set(ranks) - {one.rank for one in incumbents if one.steady}
    ending: list[str] = []
    changing: list[str] = []
    waiting: set[int] = set()
    there = {(one.rank, one.node): one for one in incumbents}
    for one in sorted(incumbents, key=lambda one: (one.leads, one.rank, one.node)):
        wanted = target.get(one.rank) == one.node
        if wanted and not one.outdated:
            continue
        if one.silent and one.rank in ranks and one.rank not in target:
            continue  # nothing can run in its place: its node, once it is back, goes on with it
        successor = there.get((one.rank, target.get(one.rank, "")))
        if not wanted and not _is_needed(one, successor, ranks):
            ending.append(one.entity)
        elif not wanted and one.rank in target and not _is_in_vain(one, successor):
            continue  # until its replacement runs
        elif one.rank in down or len(down) < down_max:
            down.add(one.rank)
            (changing if wanted else ending).append(one.entity)
        else:
            waiting.add(one.rank)
    return Handover(tuple(ending), tuple(changing), tuple(sorted(waiting)))


def _is_needed(one: Incumbent, successor: Incumbent | None, ranks: Collection[int]) -> bool:
    """Whether a replica that is to leave is all that there is of its rank."""
    replaced = successor is not None and successor.running
    return one.rank in ranks and not one.gone and not replaced


def _is_in_vain(one: Incumbent, successor: Incumbent | None) -> bool:
    """Whether its node waits for it, and its replacement does not come to run."""
    return one.must_leave and successor is not None and successor.stuck
