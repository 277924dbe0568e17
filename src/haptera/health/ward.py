"""All machines of a cluster, as rules judge them: their tracks, symptoms and grades; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from haptera.health.judge import Symptom, fingerprints, grade_of, is_of
from haptera.health.readings import Timed
from haptera.health.rule import Fingerprint, Grade, HealthRule, Mode
from haptera.health.track import Track
from haptera.model.reading import SERIES_MAX

# A sensor that was read by nobody for so long is not there any more, and its symptoms with it.
FORGOTTEN_S: Final = 86_400.0
# The most that is kept of one machine, a track for each rule that reads a sensor; and the most
# names of sensors whose readers are known, of all machines.
TRACKS_MAX: Final = 4 * SERIES_MAX
READERS_MAX: Final = 65_536


class Ward:
    """The tracks of all rules on all sensors of all machines."""

    def __init__(self, rules: Iterable[HealthRule]) -> None:
        self.rules: Mapping[str, HealthRule] = {}
        self._tracks: dict[str, dict[tuple[str, str], Track]] = {}
        # The rules that read a sensor, by its name.
        self._readers: dict[str, tuple[HealthRule, ...]] = {}
        self._several: dict[str, dict[str, Symptom]] = {}
        self._well_since: dict[str, float] = {}
        # Rules that only suggest, whatever their mode is.
        self.distrusted: frozenset[str] = frozenset()
        self.follow(rules)

    def follow(self, rules: Iterable[HealthRule]) -> None:
        """Judge by these rules from now on; what another rule of a name knew is forgotten."""
        before, self.rules = self.rules, {one.name: one for one in rules}
        changed = {name for name, one in before.items() if self.rules.get(name) != one}
        self._readers.clear()
        for tracks in self._tracks.values():
            for key in [key for key in tracks if key[0] in changed]:
                del tracks[key]

    def add(self, machine: str, sensor: str, one: Timed, now: float) -> None:
        """A sensor of a machine was read; of too many, the one read longest ago is forgotten."""
        if sensor not in self._readers:
            if len(self._readers) >= READERS_MAX:
                self._readers.clear()
            self._readers[sensor] = tuple(
                rule
                for rule in self.rules.values()
                if not isinstance(rule.pipeline.test, Fingerprint) and is_of(rule, sensor)
            )
        tracks = self._tracks.setdefault(machine, {})
        for rule in self._readers[sensor]:
            key = rule.name, sensor
            if key not in tracks:
                if len(tracks) >= TRACKS_MAX:
                    del tracks[min(tracks, key=lambda one: tracks[one].read_at or 0.0)]
                tracks[key] = Track(rule, sensor)
            tracks[key].add(one, now)

    def keep_only(self, machines: Iterable[str]) -> None:
        """Forget machines that are gone."""
        for name in self._tracks.keys() - {*machines}:
            del self._tracks[name]
            self._several.pop(name, None)
            self._well_since.pop(name, None)

    def forget_unread(self, machine: str, now: float) -> None:
        """Forget the sensors of a machine that were not read for a day."""
        tracks = self._tracks.get(machine, {})
        for key, one in [*tracks.items()]:
            if one.read_at is not None and now - one.read_at > FORGOTTEN_S:
                del tracks[key]

    def symptoms(self, machine: str) -> tuple[Symptom, ...]:
        """The symptoms of a machine now, the worst first."""
        single = [
            one.symptom for one in self._tracks.get(machine, {}).values() if one.symptom is not None
        ]
        before = self._several.get(machine, {})
        several = [*fingerprints(self.rules.values(), single, before)]
        self._several[machine] = {one.rule: one for one in several}
        found = sorted((*single, *several), key=_order)
        return tuple(
            replace(one, mode=Mode.SUGGEST) if one.rule in self.distrusted else one for one in found
        )

    def grade(self, machine: str) -> Grade:
        """The grade of a machine's health."""
        return grade_of(self.symptoms(machine), is_read=bool(self._tracks.get(machine)))

    def well_since(self, machine: str, now: float, fresh_s: float) -> float | None:
        """Since when no rule that acts has said anything of a machine that is read."""
        read = [
            one.read_at for one in self._tracks.get(machine, {}).values() if one.read_at is not None
        ]
        ill = any(one.mode is Mode.ACT for one in self.symptoms(machine))
        if ill or not read or now - max(read) > fresh_s:
            self._well_since.pop(machine, None)
            return None
        return self._well_since.setdefault(machine, now)


def _order(one: Symptom) -> tuple[int, str, str]:
    return -list(Grade).index(one.grade), one.rule, one.sensor
