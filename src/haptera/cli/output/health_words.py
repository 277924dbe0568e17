"""The health of a node in words: its grade, its care, and each rule that speaks of it."""

from haptera.kinds import health, node
from haptera.model.answers.views import EntityView
from haptera.model.declared.schema import Plain
from haptera.model.walltime import utc_text


def of_health(view: EntityView) -> list[str]:
    """The lines on a health entity; none where it says nothing."""

    def said(plain: Plain) -> str | int | None:
        held = view.desired.get(plain.name)
        return None if held is None else held.value

    def when(plain: Plain, words: str) -> list[str]:
        at = said(plain)
        return [] if at is None else [f"{words} {utc_text(int(at))}"]

    grade, care, says = said(health.grade), said(health.care), said(health.says)
    about = [
        *([] if grade is None else [str(grade)]),
        *when(health.since, "since"),
        *when(health.expected, "a limit is expected to be met at"),
        *([] if care is None else [f"in care: {care}"]),
    ]
    first = [", ".join(about)] if about else []
    return [*first, *([] if says is None else str(says).split("; "))]


def of_profile(view: EntityView) -> list[str]:
    """The line on a node's power profile that a cap has chosen; none where it has not."""
    why = view.desired_value(node.power_why.name) if view.kind == node.kind.name else None
    return [] if why is None else [f"{view.desired_value(node.power_profile.name)}: {why}"]
