"""The fragments of an entity's update, kept until all of them are there."""

from haptera.core.state.entity.link_state import Fragments
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.model.messages import ObservedFragment, ObservedUpdate, SeenValue, Standing


def gather(row: EntityState, fragment: ObservedFragment, at: int) -> ObservedUpdate | None:
    """The whole report, as of now, once this fragment was the last that lacked.

    Parts of one version have the same values however they were cut, so any of them fit together.
    """
    so_far = row.link.fragments
    if so_far is None or so_far.version < fragment.version:
        so_far = row.link.fragments = Fragments(fragment.version)
    if so_far.version > fragment.version:
        return None
    if not fragment.values:
        so_far.stands = fragment.standing, at
    for name, seen in fragment.values.items():
        if name in so_far.values or len(so_far.values) < fragment.count:
            so_far.values[name] = seen, at
    if so_far.stands is None or len(so_far.values) < fragment.count:
        return None
    row.link.fragments = None
    values = {name: _aged(seen, at - then) for name, (seen, then) in so_far.values.items()}
    standing, then = so_far.stands
    if standing is not None:
        standing = _lasted(standing, at - then)
    return ObservedUpdate(fragment.entity, fragment.version, values, standing=standing)


def _aged(seen: SeenValue, ns: int) -> SeenValue:
    """It is this much older now: rather too old than too fresh, for it was read before it came."""
    return SeenValue(
        seen.value, seen.known, seen.method, seen.age_ms + -(-ns // MS), seen.by, seen.note
    )


def _lasted(one: Standing, ns: int) -> Standing:
    return Standing(one.condition, one.since_ms + ns // MS, one.why, one.error, one.wanted)
