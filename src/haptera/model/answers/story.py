"""The story of one entity, as people and programs receive it."""

import msgspec


class DecisionView(msgspec.Struct, frozen=True, gc=False):
    """One decision of the side that answers.

    `seen` are the variables that were read otherwise than at the decision before (null: no longer
    known), `ended` the steps that ended since, with their outcomes. `condition` and `why` are the
    status, `next` says what was done; `claims` what the entity held or waited for from then on,
    `looks` what was read at once. It was to be decided again `wake_in_ms` later, if nothing had
    happened before; `incomplete`: there was no time left to plan.
    """

    ago_ms: int
    condition: str
    next: str
    why: str | None = None
    seen: dict[str, str | None] = {}
    ended: list[str] = []
    claims: list[str] = []
    looks: list[str] = []
    wake_in_ms: int | None = None
    incomplete: bool = False


class StoryView(msgspec.Struct, frozen=True, gc=False):
    """The last decisions on an entity that differ from the ones before them, oldest first."""

    entity: str
    decisions: list[DecisionView]
