"""Many entities that stand alike as one group: by kind, condition and reason, folded."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from haptera.cli.output.words import held, printable, sentence
from haptera.model.answers.reason_text import cause
from haptera.model.answers.views import SETTLED, Condition, EntityView
from haptera.model.entity import EntityId
from haptera.model.walltime import duration
from haptera.selectors.selector import fold_entities

Key = TypeVar("Key", bound=Hashable)

# What asks for attention comes last, next to the prompt.
_ORDER = tuple(Condition)


@dataclass(frozen=True, slots=True)
class AlikeGroup:
    """Entities with the same title (`node`, `service web`), condition and reason."""

    title: str
    condition: Condition
    why: str | None
    views: tuple[EntityView, ...]

    @property
    def selector(self) -> str:
        """All of them, as a selector."""
        return fold_entities(map(_entity, self.views))


def grouped(views: Iterable[EntityView]) -> list[AlikeGroup]:
    """Groups by title, condition and reason, in this order.

    Reasons that differ only in which node is meant are one, with `the node` as subject.
    """
    by_key = _by(
        views,
        lambda view: (
            _entity(view).title,
            _ORDER.index(view.condition),
            cause(view.why, view.node),
            view.frozen or "",
        ),
    )
    return [
        AlikeGroup(
            name, _ORDER[rank], (some[0].why if len(some) == 1 else why) or None, tuple(some)
        )
        for (name, rank, why, _), some in sorted(by_key.items())
    ]


def together(group: AlikeGroup) -> str:
    """Entities that stand alike, in one line."""
    if len(group.views) == 1:
        return sentence(group.views[0])
    lasted = [view.since_ms for view in group.views]
    since = list(dict.fromkeys(map(duration, (min(lasted), max(lasted)))))
    who = f"{group.selector} ({len(group.views)})"
    if group.condition in SETTLED:
        return f"{who} are {group.condition}{held(group.views[0])}"
    reason = printable(group.why or "no reason is known") + held(group.views[0])
    return f"{who} are {group.condition} for {' to '.join(since)}: {reason}"


def _entity(view: EntityView) -> EntityId:
    return EntityId(view.kind, view.name, view.node)


def _by(
    views: Iterable[EntityView], key: Callable[[EntityView], Key]
) -> dict[Key, list[EntityView]]:
    found: dict[Key, list[EntityView]] = {}
    for view in views:
        found.setdefault(key(view), []).append(view)
    return found
