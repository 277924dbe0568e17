"""What was done with a freeze, in words: what it held since, until when and why."""

from collections.abc import Sequence
from typing import Final

from haptera.kinds.rules import freeze
from haptera.model.answers.past import Changed
from haptera.model.walltime import utc_text

KIND: Final = f"{freeze.kind.name}:"


def told_once(changes: Sequence[Changed]) -> list[Changed]:
    """These changes, in their order; what one write did with a freeze is one of them."""
    groups: dict[tuple[int, str], list[Changed]] = {}
    for one in changes:
        if one.entity.startswith(KIND):
            groups.setdefault((one.revision, one.entity), []).append(one)
    return [one for one in changes if groups.get((one.revision, one.entity), [one])[0] is one]


def words(changes: Sequence[Changed], first: Changed) -> str | None:
    """What the write of this change did with its freeze; None where it is of none."""
    if not first.entity.startswith(KIND):
        return None
    mine = [one for one in changes if (one.revision, one.entity) == (first.revision, first.entity)]
    after = {one.name: one.after for one in mine}
    if None in after and after[None] is None:
        return "thawed"
    of = after.get(freeze.of.name)
    told = "frozen" if of is None else f"frozen: {of}"
    if (until := after.get(freeze.until_s.name)) is not None:
        told += f" until {utc_text(int(until))}"
    return told
