"""What the controller of groups reads off one view: of a node, a group, a replica or a system."""

from collections.abc import Iterable, Mapping
from typing import Final

from haptera.kinds import health
from haptera.kinds.group import TRIAL_RANK_MIN, members_of, numbered
from haptera.kinds.node import Power
from haptera.kinds.service import Run
from haptera.model.declared.schema import Applied
from haptera.model.facts import Method
from haptera.sdk import Condition, EntityView

# Where half of all nodes fall silent, but this many at least, nothing is placed for so long: it
# may be the link of this parent, and they may be back soon. Another leads all the same.
SILENT_MIN: Final = 3
HOLD_S: Final = 30
HOLD_MS: Final = HOLD_S * 1_000


def rank_in(view: EntityView, name: str) -> int | None:
    """The rank that a group names there."""
    value = view.desired_value(name)
    return None if value is None else int(value)


def placement_of(one: EntityView) -> tuple[int, str]:
    """Of a replica: which place of its rank it is; the last one is the highest."""
    return int(one.desired_value("placement") or 0), one.entity


def rank_of(view: EntityView) -> int:
    """Of a replica."""
    return numbered(view.name)[1]


def runs_ms(view: EntityView) -> int | None:
    """For how long a replica is known to run; None where it does not, or nobody knows."""
    run = view.observed.get("run")
    return run.age_ms if run is not None and run.known and run.value == Run.RUNNING else None


def has_stopped(view: EntityView) -> bool:
    """Whether a replica is known not to run."""
    return view.known_value("run") in (Run.STOPPED, Run.FAILED)


def fault_groups(view: EntityView, dimension: str) -> frozenset[str]:
    return frozenset(members_of(view.attributes.get(dimension, "")))


def has_failed(view: EntityView) -> bool:
    """Whether a node is not there, or cannot be got to be there."""
    agent = view.observed.get("agent")
    if agent is not None and agent.known:
        return False
    # It was heard, and is not any more; else it boots, as far as anybody knows.
    silent = view.lost_ms is not None or (agent is not None and agent.method == Method.READ)
    return silent or view.condition is Condition.STUCK


def silence_of(nodes: Iterable[EntityView]) -> str | None:
    """Why nothing is placed for now: so many nodes fell silent that the link here is suspected.

    Nodes that fall silent together are lost one after another, as their last hellos came: those
    that are late when the first of them is lost count with it.
    """
    expected = [one for one in nodes if one.desired_value("power") != Power.OFF]
    lately = [one for one in expected if one.lost_ms is not None and one.lost_ms < HOLD_MS]
    silent = len(lately) + sum(one.suspect for one in expected)
    if not lately or silent < max(SILENT_MIN, len(expected) / 2):
        return None
    return f"{silent} of {len(expected)} nodes fell silent: held for {HOLD_S} s"


def is_to_flip(view: EntityView) -> bool:
    """Whether a system runs another image than it should, which was not found unfit for it."""
    applied = view.known_value("applied")
    is_other = applied is not None and applied != Applied.CURRENT
    return is_other and view.known_value("refused") != Applied.CURRENT


def vacated(
    nodes: Mapping[str, EntityView],
    systems: Mapping[str, EntityView],
    healths: Mapping[str, EntityView],
) -> set[str]:
    """The nodes that are about to be disturbed, or in care for their health."""
    return {
        *(name for name, one in nodes.items() if one.desired_value("power") == Power.OFF),
        *(str(one.node) for one in systems.values() if is_to_flip(one)),
        *(one.name for one in healths.values() if one.desired_value(health.care.name) is not None),
    }


def holds_nothing(view: EntityView) -> bool:
    """Whether no process on a node can act under a lease: it is off, or was silent for too long."""
    power, agent = view.observed.get("power"), view.observed.get("agent")
    if agent is not None and agent.known:
        return False
    off = power is not None and power.known and power.value == Power.OFF
    return view.lost_ms is not None or (off and power is not None and power.contested is None)


def ranks_of(view: EntityView) -> range:
    """The ranks that are to run: none where there is nothing to run."""
    runs = view.desired_value("command") is not None
    return range(int(view.desired_value("replicas") or 0) if runs else 0)


def is_trial(rank: int) -> bool:
    """Whether a rank is one of a trial's replicas."""
    return rank >= TRIAL_RANK_MIN


def lacks(view: EntityView, choice: int | None, ranks: range) -> str:
    """What is desired of the group and cannot be, in words."""
    if view.desired_value("command") is None:
        return "it has no command, so nothing runs"
    return "" if choice is None or choice in ranks else f"there is no rank {choice} to lead"


def by_group(views: Iterable[EntityView], name: str, owner: str) -> dict[str, list[EntityView]]:
    """Those that are the controller's own, as the owner of this value shows, by their groups."""
    found: dict[str, list[EntityView]] = {}
    for view in views:
        held = view.desired.get(name)
        if held is not None and held.owner == owner:
            found.setdefault(numbered(view.name)[0], []).append(view)
    return found
