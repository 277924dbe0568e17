"""A simulated machine's gate and jobs: as those of a real one, and gone with its power."""

from random import Random

import pytest

from haptera.model.effects import Call, Work
from haptera.model.entity import node_id
from haptera.model.events import Answered, Ended, Failed, WatchReported
from haptera.testing.clock import Clock
from haptera.testing.machine import JOBS_SEEN_MS, MS, Killed, Machine, Trouble

S = 1_000 * MS
Event = Answered | Ended | Failed | WatchReported


class Rig:
    """One machine, and what its modules answer."""

    def __init__(self, seed: int = 1) -> None:
        self.clock = Clock(seed)
        self.machine = Machine(self.clock, "n01", lambda _: None, lambda _: None)
        self.machine.power = "on"
        self.count = 0
        self.heard: list[Event] = []
        self.died = 0

    def ask(self, work: Work, part: str | None = None, *, after_s: float = 4) -> Event | None:
        """What comes of a call within this time."""
        self.begin(work, part)
        self.pass_time(after_s)
        answers = [one for one in self.heard if one.call == self.count]
        return answers[-1] if answers else None

    def begin(self, work: Work, part: str | None = None) -> None:
        self.count += 1
        deadline_at = None if work is Work.WATCH else self.clock.now + 2 * S
        call = Call(
            self.count, work, "jobs", part or work, node_id("n01"), {}, {}, "", deadline_at,
            f"i{self.count}",
        )  # fmt: skip
        self.machine.handle(call, self.heard.append, self._die)

    def pass_time(self, seconds: float) -> None:
        self.clock.run_until(self.clock.now + int(seconds * S))

    def _die(self) -> None:
        self.died += 1


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_machine_boots_closed_and_jobs_start_once_it_is_released(rig: Rig) -> None:
    assert not rig.machine.start_job()
    assert rig.ask(Work.RELEASE) == Ended(1)
    assert rig.machine.start_job()
    rig.machine.power = "off"
    assert not rig.machine.start_job()


def test_a_busy_machine_refuses_to_be_held_and_stays_open(rig: Rig) -> None:
    rig.ask(Work.RELEASE)
    assert [rig.machine.start_job() for _ in range(2)] == [True, True]
    assert rig.ask(Work.HOLD) == Failed(2, "2 jobs run", refused=True)
    assert rig.machine.start_job()

    for _ in range(3):
        rig.machine.end_job()
    assert rig.ask(Work.HOLD) == Ended(3)
    assert not rig.machine.start_job()


def test_whether_it_is_busy_is_looked_at_and_watched(rig: Rig) -> None:
    rig.ask(Work.RELEASE)
    rig.begin(Work.WATCH, "look_busy")
    rig.pass_time(JOBS_SEEN_MS / 1000)
    rig.machine.start_job()
    rig.pass_time(JOBS_SEEN_MS / 1000)
    rig.machine.end_job()
    rig.pass_time(JOBS_SEEN_MS / 1000)

    told = [one.value for one in rig.heard if isinstance(one, WatchReported)]
    assert told == ["free", "busy", "free"]
    answer = rig.ask(Work.LOOK, "look_busy")
    assert isinstance(answer, Answered)
    assert answer.value == "free"


def test_jobs_that_power_is_cut_under_are_told_with_what_cut_it(rig: Rig) -> None:
    rig.ask(Work.RELEASE)
    rig.machine.start_job()
    rig.ask(Work.STEP, "force_off")
    off_at = rig.machine.commands[0].done_at
    assert (rig.machine.power, rig.machine.gate, rig.machine.jobs) == ("off", "closed", 0)

    rig.ask(Work.STEP, "switch_on")
    rig.ask(Work.RELEASE)
    rig.machine.start_job()
    rig.machine.cut()
    assert off_at is not None
    assert rig.machine.killed == [Killed(off_at, "i2"), Killed(rig.clock.now, None)]


def test_a_release_on_its_way_when_power_is_lost_opens_nothing(rig: Rig) -> None:
    rig.begin(Work.RELEASE)
    rig.machine.cut()
    rig.ask(Work.STEP, "switch_on")

    assert (rig.machine.power, rig.machine.gate) == ("on", "closed")


@pytest.mark.parametrize(
    ("trouble", "answer", "gate", "died"),
    [
        (Trouble(silent=1), None, "open", 0),
        (Trouble(fatal=1), None, "open", 1),
        (Trouble(failing=1), Failed(1, "the gate cannot be opened"), "closed", 0),
    ],
)
def test_a_gate_in_trouble_may_act_and_not_tell_or_tell_and_not_act(
    rig: Rig, trouble: Trouble, answer: Event | None, gate: str, died: int
) -> None:
    rig.machine.trouble = trouble

    assert (rig.ask(Work.RELEASE), rig.machine.gate, rig.died) == (answer, gate, died)


def test_a_slow_gate_acts_in_time_or_not_at_all() -> None:
    answers = set()
    for seed in range(20):
        rig = Rig(seed)
        rig.machine.trouble = Trouble(slow=1)
        answer = rig.ask(Work.RELEASE)
        assert (answer == Ended(1)) is (rig.machine.gate == "open")
        answers.add(answer)
    assert answers == {Ended(1), Failed(1, "too late to begin", refused=True)}


@pytest.mark.parametrize("seed", range(20))
def test_the_gate_is_as_a_plain_model_through_random_histories(seed: int) -> None:
    """As `tests/modules/test_jobs.py` has it for the real one."""
    rig, rng = Rig(seed), Random(seed)
    is_open, jobs = False, 0
    for _ in range(40):
        match rng.choice(("start", "start", "end", "hold", "hold", "release")):
            case "start":
                assert rig.machine.start_job() is is_open
                jobs += is_open
            case "end" if jobs:
                rig.machine.end_job()
                jobs -= 1
            case "hold":
                is_open = jobs > 0
                assert isinstance(rig.ask(Work.HOLD), Failed if jobs else Ended)
            case "release":
                is_open = True
                rig.ask(Work.RELEASE)
        assert (rig.machine.gate == "open", rig.machine.jobs) == (is_open, jobs)
