"""J2: both sides die at each point of a job's life, and at each two; nothing is lost or run twice.

The simulated world asks at each of its points whether something fails there; here the answer is
yes at the points of one example, and no at all others. So each point is tried, not some by chance.
"""

from itertools import combinations, pairwise

import pytest

from haptera.queue.entry import Submission
from haptera.queue.job import ENDED, JobSpec, JobState, RetryClass
from tests.queue.test_simulated import Simulation

# A job, and after it what a lost node, a lease and another run take; in steps of the world.
ROUNDS, ROUNDS_AFTER = 60, 300
RUNS_MAX = 3


class Scripted(Simulation):
    """Two nodes, a job that may be run again, and faults where they are to be."""

    def __init__(self, faults: tuple[int, ...]) -> None:
        self.points = 0
        self.faults = faults
        super().__init__(seed=30)
        self.nodes = self.nodes[:2]
        spec = JobSpec(("true",), self.nodes[0].size, retry=RetryClass.LOST)
        self.queue.submit(Submission(owner="eve", name="it", spec=spec), self.now)
        self.disk.write(self.queue.changes())

    def chance(self, percent: int) -> bool:
        self.points += 1
        return self.points in self.faults

    def settle(self, rounds: int) -> None:
        """Until the job has ended, and no node has anything of it any more."""
        for _ in range(rounds):
            self.step()
            over = all(one.state in ENDED for one in self.queue.jobs.values())
            if over and not any(node.held for node in self.nodes):
                return
        raise AssertionError((self.faults, self.queue.jobs, self.nodes))


def points() -> int:
    """How many there are until a job without faults has ended."""
    world = Scripted(())
    world.settle(ROUNDS)
    return world.points


def judge(faults: tuple[int, ...]) -> None:
    world = Scripted(faults)
    world.settle(ROUNDS + ROUNDS_AFTER)
    (job,) = world.queue.jobs.values()
    runs = sorted((one.from_ms, one.to_ms, one.token) for one in world.effects)
    assert 1 <= len(runs) <= RUNS_MAX
    assert all(one[1] <= two[0] for one, two in pairwise(runs)), runs
    assert (job.state is JobState.CANCELLED, runs[-1][2]) == (False, job.token)


def test_j2_one_fault_at_each_point_leaves_nothing_behind() -> None:
    for at in range(1, points() + 1):
        judge((at,))


@pytest.mark.slow
def test_j2_two_faults_at_each_two_points_leave_nothing_behind() -> None:
    for two in combinations(range(1, points() + 1), 2):
        judge(two)
