"""Automation stopped for some entities, by whom its owner is, for a reason and until a time."""

from haptera.kinds import module
from haptera.kinds.rule import OF_BYTES_MAX, parse_rule
from haptera.model.desirable import between
from haptera.model.errors import HapteraError
from haptera.model.schema import Kind, Plain
from haptera.model.walltime import WALL_S_MAX

REASON_BYTES_MAX = 256


def _check_reason(text: str) -> None:
    if not text.strip():
        raise HapteraError("there is no reason", do="say why, for whoever finds it frozen")


of = Plain("freeze", "of", str, OF_BYTES_MAX, parse_rule)
reason = Plain("freeze", "reason", str, REASON_BYTES_MAX, _check_reason)
# Without it, the freeze holds until somebody thaws it.
until_s = Plain("freeze", "until_s", int, 8, between(1, WALL_S_MAX))

# What is frozen is looked at as before, and that takes modules: these go on.
EXEMPT = frozenset({module.kind.name})

kind = Kind("freeze", (), plain=(of, reason, until_s), everywhere=True)
