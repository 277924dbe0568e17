"""How the trial of a group does, for people and programs; pure."""

from collections.abc import Iterable, Iterator

import msgspec

from haptera.controllers.group_views import is_trial, rank_of
from haptera.controllers.versions import own_until
from haptera.kinds import group, lease, replica
from haptera.kinds.group import GroupVersion, numbered
from haptera.kinds.lease import LeaseState
from haptera.kinds.replica import TrialCounts
from haptera.kinds.service import Run
from haptera.model.answers.views import EntityView


class TrialReplica(msgspec.Struct, frozen=True, gc=False):
    """A replica on trial: what is known of its process, and how its outputs compare.

    The counts are None until they are known; `first` is where it differed first, as the number of
    the input's message and of the output since.
    """

    entity: str
    run: str | None
    equal: int | None
    different: int | None
    first: str | None


class TrialStatus(msgspec.Struct, frozen=True, gc=False):
    """A group that tries another version.

    `version` is to lead, and `leads` does now; None: nobody. The group's own replicas end at
    `own_until`, in seconds since 1970, if the trial leads then; None: they stay.
    """

    group: str
    command: str
    version: GroupVersion
    leads: GroupVersion | None
    own_until: int | None
    replicas: list[TrialReplica]


def trial_statuses(views: Iterable[EntityView]) -> Iterator[TrialStatus]:
    """Of each group of these that has a trial, by name.

    Its replicas are as their agents see them: these alone know how outputs compare.
    """
    views = sorted(views, key=lambda one: one.entity)
    for view in views:
        if view.kind == group.kind.name and view.desired_value(group.trial.name) is not None:
            its = [one for one in views if one.node and numbered(one.name)[0] == view.name]
            yield TrialStatus(
                view.name,
                str(view.desired_value(group.trial.name)),
                GroupVersion(str(view.desired_value(group.version.name) or GroupVersion.OWN)),
                _leads([one for one in its if one.kind == lease.kind.name]),
                own_until(view),
                [_replica(one) for one in its if is_on_trial(one)],
            )


def is_on_trial(one: EntityView) -> bool:
    """True of a replica that is to run another version of its group."""
    return (
        one.kind == replica.kind.name
        and is_trial(rank_of(one))
        and one.desired_value(replica.run.name) != Run.STOPPED
    )


def _leads(leases: Iterable[EntityView]) -> GroupVersion | None:
    held = [one for one in leases if one.known_value(lease.state.name) == LeaseState.HELD]
    if not held:
        return None
    last = max(held, key=lambda one: numbered(one.name)[1])
    rank = int(last.desired_value(lease.rank.name) or 0)
    return GroupVersion.TRIAL if is_trial(rank) else GroupVersion.OWN


def _replica(one: EntityView) -> TrialReplica:
    role = one.observed.get(replica.role.name)
    counts = TrialCounts.of(None if role is None else role.note)
    run = one.known_value(replica.run.name)
    return TrialReplica(one.entity, run, *(counts or (None, None, None)))
