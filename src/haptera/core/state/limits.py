"""How long the engine waits for what; all in ns."""

from typing import Final

MS: Final = 1_000_000
S: Final = 1_000_000_000

# A constant back-off for what has no policy of its own: watches, the disk.
BACKOFF_NS: Final = 2 * S
# Readings that agree over so long are not one lie of a device.
SURE_NS: Final = 1 * S
# How soon an outcome that is not there yet is looked at again.
READ_AGAIN_NS: Final = 200 * MS
# A call's own process checks its deadline; this much later nobody waits for it any more.
ANSWER_GRACE_NS: Final = 500 * MS
# A fact lives until this many looks at it are overdue.
LOOKS_OVERDUE_MAX: Final = 3
# A step that has to be done again and again within so long is slowed down, from this many on.
LASTS_NS: Final = 600 * S
DONE_AGAIN_MAX: Final = 4
# How often one entity may be decided on again within a turn.
ROUNDS_MAX: Final = 16
# For how many things whose time has come a turn wakes up; the next one begins at once.
WOKEN_MAX: Final = 100
# After how long a neighbour that has not shown to hold a change is told it again; then hellos do.
TELL_AGAIN_NS: Final = (250 * MS, 500 * MS, 1 * S, 1 * S, 2 * S)
# Of how many entities that are gone a parent tells each of its nodes.
GONE_MAX: Final = 64
# A tick that comes later than this past its time is a pause in our own listening.
LAG_MAX_NS: Final = 250 * MS
# How soon a gate that refused, or a module that did not answer for it, is asked again.
GATE_AGAIN_NS: Final = 2 * S
# How soon a gate that drains its node is asked again whether all has ended.
DRAIN_AGAIN_NS: Final = 5 * S
# How long a node is drained at most, a week, as the longest jobs are allowed; it is let go of
# then, and for so long nobody drains it again.
DRAIN_NS_MAX: Final = 7 * 86_400 * S
DRAIN_REST_NS: Final = 3_600 * S
# How long a parent that starts waits until what it held before is asked for again, and held on.
UNASKED_NS: Final = 60 * S
# A node that is there and does not say within so long whether it permits a step is as good as no.
ANSWER_WITHIN_NS: Final = 10 * S
# How long a parent leaves a node alone that refused a permit, so that others have their turn.
PERMIT_AGAIN_NS: Final = 5 * S
# How long a node need not permit what an admin wants of it all the same.
OVERRIDE_NS: Final = 600 * S
# Boots that begin within one second of the clock: of a parent's children, and of a fault group.
BOOTS_A_SECOND_MAX: Final = 10
GROUP_BOOTS_A_SECOND_MAX: Final = 2
# A turn to boot that was not taken within so long is given up.
BOOT_TURN_NS: Final = 60 * S
# Children that fall silent within this time of each other may have one cause.
BRAKE_WINDOW_NS: Final = 30 * S
# More than so many of them, or this share of all, or of one fault group, put the brake on.
BRAKE_CHILDREN_MIN: Final = 10
BRAKE_SHARE: Final = 0.1
BRAKE_GROUP_MIN: Final = 3
BRAKE_GROUP_SHARE: Final = 0.5
# The brake is on until nobody has fallen silent for so long.
BRAKE_NS: Final = 300 * S
# Within which a budget counts the disruptive steps of a node.
BUDGET_HOUR_NS: Final = 3_600 * S
# How long a worker may search for a plan before it is taken to hang; when a search that was given
# up is made once more, and when a question is asked again for which there was no room.
SEARCH_WITHIN_NS: Final = 300 * S
SEARCH_AGAIN_NS: Final = 600 * S
SEARCH_QUEUE_AGAIN_NS: Final = 30 * S
# How long a person who considers changes waits for plans that take long.
PREVIEW_WITHIN_NS: Final = 10 * S
# How long layers may differ before it is asked in what, and again once that was answered; and how
# long the answer may take.
LIST_AFTER_NS: Final = 500 * MS
LIST_AGAIN_NS: Final = 2 * S
LIST_WITHIN_NS: Final = 10 * S
# How often that is asked before all is told again, and of how many at most some are.
LISTS_MAX: Final = 3
RECALLED_MAX: Final = 512
# After how long a neighbour whose schema could not be fetched is asked for it again.
SCHEMA_AGAIN_NS: Final = 30 * S
