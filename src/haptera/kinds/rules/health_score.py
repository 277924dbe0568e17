"""The outcomes of a health rule's predictions; it has the rule's name, and is the controller's."""

from typing import Final

from haptera.model.declared.desired_check import between
from haptera.model.declared.schema import Kind, Plain

COUNT_MAX: Final = 1_000_000_000

came_true = Plain("health-score", "came_true", int, 8, between(0, COUNT_MAX))
came_not = Plain("health-score", "came_not", int, 8, between(0, COUNT_MAX))
# The machine was taken into care before, or nobody reads it any more.
undecided = Plain("health-score", "undecided", int, 8, between(0, COUNT_MAX))

kind = Kind("health-score", (), plain=(came_true, came_not, undecided), of_cluster=True)
