"""The choice of machines to spare, to take out and to give back, by their symptoms; pure.

It decides on what is so now: nothing is replayed, and a brake that is on holds back new care only,
never the way back.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from haptera.health.judge import Symptom
from haptera.health.rule import GRADES, Mode

# A symptom last seen earlier starts no care: a sensor that is silent cannot be asked again.
FRESH_S: Final = 900.0
# A rule that speaks of so many machines at once, and of at least this many, is itself the fault:
# a broken sensor, a wrong limit, or a hall that is hot, where no machine is better than another.
COMMON_SHARE: Final = 0.5
COMMON_MIN: Final = 3


class CareStage(StrEnum):
    """SPARED: given nothing new, what runs ends or moves. OUT: nothing runs, and it stays so."""

    SPARED = "spared"
    OUT = "out"


@dataclass(frozen=True, slots=True)
class CareLimits:
    """The limit on machines in care at once, and the time one must be well before it is given back.

    Of `at_once` and `share`, in percent, the lesser counts; a share that is not 0 is one machine at
    least.
    """

    at_once: int = 2
    share: int = 10
    well_s: float = 900.0

    def most(self, machines: int) -> int:
        """The largest number of machines in care, out of a number of machines.

        >>> [CareLimits(at_once=4, share=10).most(machines) for machines in (0, 5, 30, 1_000)]
        [0, 1, 3, 4]
        """
        return min(machines, self.at_once, max(min(1, self.share), machines * self.share // 100))


@dataclass(frozen=True, slots=True)
class Patient:
    """A machine: what rules say of it, and how far its care is.

    `stage` is None where it is in no care of ours. `holds` says whether jobs or replicas are still
    there. `well_since` is since when no rule that acts says anything; None where one does, or
    where nothing is read.
    """

    name: str
    symptoms: Sequence[Symptom] = ()
    stage: CareStage | None = None
    holds: bool = False
    well_since: float | None = None


@dataclass(frozen=True, slots=True)
class CareDecision:
    """The machines that are spared from now on, taken out and given back; why others are not."""

    spare: Mapping[str, str] = field(default_factory=dict)
    take_out: tuple[str, ...] = ()
    give_back: tuple[str, ...] = ()
    held: Mapping[str, str] = field(default_factory=dict)


def decide_care(
    patients: Iterable[Patient], limits: CareLimits, now: float, brake: str | None = None
) -> CareDecision:
    """The next moves; `brake` is the reason for which no new care may begin, if there is one."""
    all_of_them = sorted(patients, key=lambda one: one.name)
    common = common_rules(all_of_them)
    take_out = tuple(
        one.name for one in all_of_them if one.stage is CareStage.SPARED and not one.holds
    )
    give_back = tuple(one.name for one in all_of_them if _is_well(one, limits, now))
    in_care = sum(one.stage is not None for one in all_of_them) - len(give_back)
    room = limits.most(len(all_of_them)) - in_care
    spare: dict[str, str] = {}
    held: dict[str, str] = {}
    for one, worst in _waiting(all_of_them, now):
        if worst.rule in common:
            held[one.name] = f"{worst.rule} speaks of {common[worst.rule]} machines at once"
        elif brake is not None:
            held[one.name] = brake
        elif len(spare) < room:
            spare[one.name] = words_of(worst)
        else:
            held[one.name] = f"{in_care + len(spare)} are in care, and no more may be"
    return CareDecision(
        spare, tuple(one for one in take_out if one not in give_back), give_back, held
    )


def common_rules(patients: Collection[Patient]) -> dict[str, int]:
    """The rules that speak of so many machines that they are not believed, and of how many."""
    said = Counter(rule for one in patients for rule in {each.rule for each in one.symptoms})
    least = max(COMMON_MIN, COMMON_SHARE * len(patients))
    return {rule: count for rule, count in said.items() if count >= least}


def words_of(symptom: Symptom) -> str:
    """A symptom as the reason for sparing a machine; without times, which change.

    >>> from haptera.health.rule import Grade
    >>> words_of(Symptom("disk-full", "disk.used_percent[/]", Grade.DEGRADED, Mode.ACT, 0, 0, 97))
    'disk-full: disk.used_percent[/] at 97 (degraded)'
    """
    return f"{symptom.rule}: {symptom.sensor} at {symptom.value:g} ({symptom.grade})"


def _waiting(patients: Iterable[Patient], now: float) -> list[tuple[Patient, Symptom]]:
    """Those that a rule would have spared, the worst and most urgent first."""
    found = []
    for one in patients:
        acting = [
            each for each in one.symptoms if each.mode is Mode.ACT and now - each.seen <= FRESH_S
        ]
        if one.stage is None and acting:
            found.append((one, min(acting, key=_urgency)))
    return sorted(found, key=lambda pair: (_urgency(pair[1]), pair[0].name))


def _urgency(symptom: Symptom) -> tuple[int, float, str]:
    expected = symptom.since if symptom.expected is None else symptom.expected.likely
    return -GRADES.index(symptom.grade), expected, symptom.rule


def _is_well(one: Patient, limits: CareLimits, now: float) -> bool:
    return (
        one.stage is not None
        and one.well_since is not None
        and now - one.well_since >= limits.well_s
    )
