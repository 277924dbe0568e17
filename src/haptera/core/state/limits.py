"""Times that the engine waits, in ns."""

from typing import Final

MS: Final = 1_000_000
S: Final = 1_000_000_000

# A constant back-off for what has no policy of its own: watches, the disk.
BACKOFF_NS: Final = 2 * S
# A call's own process checks its deadline; this much later nobody waits for it any more.
ANSWER_GRACE_NS: Final = 500 * MS
# A fact lives until this many looks at it are overdue.
LOOKS_OVERDUE_MAX: Final = 3
# A step that has to be done again and again within so long is slowed down, from this many on.
LASTS_NS: Final = 600 * S
DONE_AGAIN_MAX: Final = 4
# How long a node need not permit what an admin wants of it all the same.
OVERRIDE_NS: Final = 600 * S
# At most so many entities are sent again one by one; beyond that, all are.
RECALLED_MAX: Final = 512
