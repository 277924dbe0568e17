"""The health of a node: its grade, the rules behind it, and its stage of care.

It has the name of its node, and is there only while it is of some use; the controller's.
"""

from typing import Final

from haptera.health.care import CareStage
from haptera.health.rule import Grade
from haptera.model.declared.desired_check import between, one_of
from haptera.model.declared.schema import Kind, Plain
from haptera.model.walltime import WALL_S_MAX

SAYS_BYTES_MAX: Final = 240

grade = Plain("health", "grade", str, 16, one_of(Grade))
# Not there while nothing is done about it.
care = Plain("health", "care", str, 16, one_of(CareStage))
# The verdict of each rule, and the obstacles to acting on it.
says = Plain("health", "says", str, SAYS_BYTES_MAX)
# The start of this grade, and the expected time of the first limit, in seconds since 1970.
since = Plain("health", "since", int, 8, between(0, WALL_S_MAX))
expected = Plain("health", "expected", int, 8, between(0, WALL_S_MAX))

kind = Kind(
    "health", (), plain=(grade, care, says, since, expected), of_cluster=True, count_max=None
)
