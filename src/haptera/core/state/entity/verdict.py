"""The status that a decision gives an entity, and the reason."""

from dataclasses import dataclass

from haptera.model.answers.views import Condition


@dataclass(frozen=True, slots=True)
class Stands:
    """Where an entity stands in the words of its node's agent, and since when.

    In those of a parent below, `wanted` stands for what was desired of it there.
    """

    condition: Condition
    since: int
    why: str | None
    error: str | None
    wanted: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where an entity stands, and why.

    `needs` is who or what stands in the way of a part that would otherwise come next; `quotes`
    what the node's agent says of it, where this side says the same; `again_at` when a plan is
    searched for once more, or what it waits for comes by itself.
    """

    condition: Condition
    why: str | None = None
    needs: str | None = None
    quotes: Stands | None = None
    again_at: int | None = None
