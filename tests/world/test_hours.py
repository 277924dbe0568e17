"""Hours of three levels of parents on which a thing breaks every minute, by seed."""

import pytest

from tests.world.hunt import an_hour

# In 5, a node that was declared anew stayed unknown at the root; in 110, what a parent had read for
# its last step on a node that another one kept by then was never forgotten; in 243, the lists of an
# agent that had moved counted as those of a process that is gone. In 190 a step is given up.
AT_THE_DESK = (5, 110, 190, 243)


@pytest.mark.parametrize("seed", AT_THE_DESK)
def test_in_an_hour_with_a_fault_a_minute_promises_hold_in_a_tree(seed: int) -> None:
    an_hour(seed)
