"""Automation stopped for some entities, by whom its owner is, for a reason and until a time."""

from haptera.kinds import module
from haptera.kinds.rules.rule import OF_BYTES_MAX, parse_rule
from haptera.model.declared.desired_check import between
from haptera.model.declared.schema import Kind, Plain
from haptera.model.errors import Code, HapteraError
from haptera.model.walltime import WALL_S_MAX, utc_text

REASON_BYTES_MAX = 256


def _check_reason(text: str) -> None:
    if not text.strip():
        raise HapteraError(
            "there is no reason", do="give a reason for those who find it frozen", code=Code.MISSING
        )


of = Plain("freeze", "of", str, OF_BYTES_MAX, parse_rule)
reason = Plain("freeze", "reason", str, REASON_BYTES_MAX, _check_reason)
# Without it, the freeze holds until somebody thaws it.
until_s = Plain("freeze", "until_s", int, 8, between(1, WALL_S_MAX))

# What is frozen is looked at as before, and that takes modules: these go on.
EXEMPT = frozenset({module.kind.name})

kind = Kind("freeze", (), plain=(of, reason, until_s), everywhere=True)


def words(owner: str, until_s: int | None, why: str | None) -> str:
    """What a freeze is, in words, as far as that is known: an agent is not told whose it is.

    >>> words("user:eve", 1_795_284_000, "board swap")
    'frozen by user:eve until 2026-11-21 18:00 UTC: board swap'
    """
    by = f" by {owner}" if owner else ""
    until = "" if until_s is None else f" until {utc_text(until_s)}"
    return f"frozen{by}{until}" + ("" if why is None else f": {why}")
