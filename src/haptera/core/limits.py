"""How long the engine waits for what; all in ns."""

from typing import Final

MS: Final = 1_000_000
S: Final = 1_000_000_000

# A constant back-off for what has no policy of its own: watches, the disk.
BACKOFF_NS: Final = 2 * S
# How soon an outcome that is not there yet is looked at again.
READ_AGAIN_NS: Final = 200 * MS
# A call's own process checks its deadline; this much later nobody waits for it any more.
ANSWER_GRACE_NS: Final = 500 * MS
# A fact lives until this many looks at it are overdue (DESIGN section 3).
LOOKS_OVERDUE_MAX: Final = 3
# A step that has to be done again and again within so long is slowed down, from this many on.
LASTS_NS: Final = 600 * S
DONE_AGAIN_MAX: Final = 4
# How often one entity may be decided on again within a turn.
ROUNDS_MAX: Final = 16
# After how long a neighbour that has not shown to hold a change is told it again; then hellos do.
TELL_AGAIN_NS: Final = (250 * MS, 500 * MS, 1 * S, 1 * S, 2 * S)
# Of how many entities that are gone a parent tells each of its nodes.
GONE_MAX: Final = 64
# A tick that comes later than this past its time is a pause in our own listening.
LAG_MAX_NS: Final = 250 * MS
