"""Views as JSON, each kept with its row: while only its ages change, it is not made anew."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.views.query import doing, view
from haptera.model.facts import Fact

# An age as it is written. In a text its quotes would be escaped.
_AGE: Final = re.compile(rb'("(?:age|since)_ms":)-?\d+')
_JSON: Final = msgspec.json.Encoder()


def text_of(row: EntityState, now: int, enrolment: str | None = None) -> msgspec.Raw:
    """The view of an entity as JSON."""
    made_of = _made_of(row, now, enrolment)
    if made_of is not None and row.text is not None and row.text[0] == made_of:
        return msgspec.Raw(row.text[1] % _ages(row, now))
    text = _JSON.encode(view(row, now, enrolment))
    if made_of is not None:
        row.text = made_of, _AGE.sub(rb"\1%d", text.replace(b"%", b"%%"))
    return msgspec.Raw(text)


def check_texts(rows: Iterable[EntityState], now: int) -> None:
    """Assert that each view that is kept is as it would be made now."""
    for row in rows:
        assert text_of(row, now) == msgspec.Raw(_JSON.encode(view(row, now))), row.id


def _made_of(row: EntityState, now: int, enrolment: str | None) -> tuple[object, ...] | None:
    """All that a view reads but when; None where more than ages may depend on that.

    What is desired is replaced whole when it changes, as plans and verdicts are.
    """
    work, stance, desired, belief = row.work, row.stance, row.desired, row.belief
    verdict, known, remembered = stance.verdict, belief.known, belief.remembered
    if (
        verdict.again_at is not None
        or row.attempts.barred
        or work.conflicts
        or row.report.lost_at is not None
        or doing(row, now) is not None
        or (work.looks and work.failed_looks(now))
    ):
        return None
    return (
        verdict,
        stance.plan,
        stance.frozen,
        desired.revision,
        desired.attributes,
        desired.values,
        row.attempts.error,
        row.report.suspect,
        enrolment,
        known and _seen(known),
        remembered and _seen(remembered),
    )


def _seen(facts: Mapping[str, Fact]) -> list[tuple[str, str, str, str, str | None]]:
    return [(name, one.value, one.by, one.method, one.note) for name, one in facts.items()]


def _ages(row: EntityState, now: int) -> tuple[int, ...]:
    """Of all that is observed, by name, and of the condition."""
    if not (facts := row.belief.known | row.belief.remembered):
        return (row.stance.lasted(now) // MS,)
    ages = [max(0, now - facts[name].at) // MS for name in sorted(facts)]
    return *ages, row.stance.lasted(now) // MS
