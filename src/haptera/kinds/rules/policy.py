"""How often parts are tried on some entities, and how long they may take, other than declared."""

from haptera.kinds.rules.rule import OF_BYTES_MAX, parse_rule
from haptera.model.declared.desired_check import between
from haptera.model.declared.schema import Kind, Plain
from haptera.model.entity import NAME_BYTES_MAX, check_name

ATTEMPTS_MAX = 1_000_000
RANK_MAX = 1_000_000
# A week.
DURATION_MS_MAX = 7 * 24 * 3_600_000


def _check_parts(text: str) -> None:
    """MODULE or MODULE.PART."""
    module, dot, part = text.partition(".")
    for name in (module, part) if dot else (module,):
        check_name(name)


_duration = between(1, DURATION_MS_MAX)

of = Plain("policy", "of", str, OF_BYTES_MAX, parse_rule)
# Without it, all parts.
parts = Plain("policy", "parts", str, 2 * NAME_BYTES_MAX + 1, _check_parts)
# Of two that set the same, the one of the higher rank holds.
rank = Plain("policy", "rank", int, 8, between(0, RANK_MAX))
attempts = Plain("policy", "attempts", int, 8, between(1, ATTEMPTS_MAX))
backoff_ms = Plain("policy", "backoff_ms", int, 8, _duration)
backoff_ms_max = Plain("policy", "backoff_ms_max", int, 8, _duration)
cool_down_ms = Plain("policy", "cool_down_ms", int, 8, _duration)
within_ms = Plain("policy", "within_ms", int, 8, _duration)
fails_to = Plain("policy", "fails_to", str)

kind = Kind(
    "policy",
    (),
    plain=(
        of,
        parts,
        rank,
        attempts,
        backoff_ms,
        backoff_ms_max,
        cool_down_ms,
        within_ms,
        fails_to,
    ),
    everywhere=True,
    count_max=1_000,
)
