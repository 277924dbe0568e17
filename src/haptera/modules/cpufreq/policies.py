"""The cpufreq policies of a node: what each profile sets of them, and which profile they have.

`scaling_max_freq` is a request: the kernel takes the least of it and of the limits that it has for
heat, and shows what came of that. So nothing that is written here raises what heat has lowered.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from haptera.kinds.node import PowerProfile
from haptera.modules.kernel_tree import KernelTree
from haptera.sdk import HapteraError, HostPath, Target

POLICIES: Final = "sys/devices/system/cpu/cpufreq"
# Drivers whose own governor `powersave` follows the load; of others it is the lowest frequency.
_OWN_GOVERNORS: Final = frozenset({"intel_pstate", "amd-pstate-epp"})
# The governors of the kernel that follow the load, the best first.
_FOLLOWING: Final = ("schedutil", "ondemand", "conservative")
# The preferences between performance and energy (EPP), the best first.
_PREFERENCES: Final = {
    PowerProfile.BALANCED: ("balance_performance", "default", "balance_power"),
    PowerProfile.POWERSAVE: ("power", "balance_power"),
}


@dataclass(frozen=True)
class CpufreqSettings:
    """`root` is where /sys is; below `performance`, processors have so much of their frequency."""

    root: HostPath = HostPath("/")
    balanced_percent: int = 100
    powersave_percent: int = 60

    def __post_init__(self) -> None:
        if not 1 <= self.powersave_percent <= self.balanced_percent <= 100:
            raise ValueError("1 <= powersave_percent <= balanced_percent <= 100 does not hold")

    def percent(self, profile: PowerProfile) -> int:
        """The share of its highest frequency that a processor has at most."""
        return {
            PowerProfile.BALANCED: self.balanced_percent,
            PowerProfile.POWERSAVE: self.powersave_percent,
        }.get(profile, 100)


@dataclass(frozen=True, slots=True)
class PolicySetting:
    """A governor, a preference (None: the driver has none, or chooses it), a frequency in kHz."""

    governor: str
    preference: str | None
    khz_max: int

    def holds(self, wanted: Self) -> bool:
        """True if this is `wanted`, or that with less frequency: a limit for heat, perhaps."""
        same = self.governor == wanted.governor and self.khz_max <= wanted.khz_max
        return same and wanted.preference in (None, self.preference)


@dataclass(frozen=True, slots=True)
class CpufreqPolicy:
    """The processors that have one frequency together: how they are set, and can be."""

    path: str
    driver: str
    now: PolicySetting
    governors: tuple[str, ...]
    preferences: tuple[str, ...]
    khz_low: int
    khz_high: int

    def wanted(self, profile: PowerProfile, percent: int) -> PolicySetting | None:
        """The setting of this profile; None where the driver has no governor for it."""
        khz = max(self.khz_low, self.khz_high * percent // 100)
        if profile is PowerProfile.PERFORMANCE:
            # It chooses the preference itself, and lets nobody else.
            return self._setting(("performance",), (), khz)
        if self.driver in _OWN_GOVERNORS:
            return self._setting(("powersave",), _PREFERENCES[profile], khz)
        if profile is PowerProfile.POWERSAVE:
            return self._setting(("powersave", *_FOLLOWING), (), khz)
        return self._setting(_FOLLOWING, (), khz)

    def _setting(
        self, governors: tuple[str, ...], preferences: tuple[str, ...], khz: int
    ) -> PolicySetting | None:
        governor = next((one for one in governors if one in self.governors), None)
        preference = next((one for one in preferences if one in self.preferences), None)
        return None if governor is None else PolicySetting(governor, preference, khz)


class Processors:
    """The processors of one node."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._settings: CpufreqSettings = target.settings
        self._tree = KernelTree.at(self._settings.root)

    @property
    def profile(self) -> PowerProfile:
        """The profile that all policies have; `other` where they have several, or none.

        Raises:
            HapteraError: there is no policy.
        """
        found = {self._profile(one) for one in self.policies()}
        return found.pop() if len(found) == 1 else PowerProfile.OTHER

    @property
    def words(self) -> str:
        """How they are set: each setting that there is, with its frequency in MHz."""
        settings = sorted({(one.now.governor, one.now.khz_max) for one in self.policies()})
        return ", ".join(f"{governor} up to {khz // 1_000} MHz" for governor, khz in settings[:4])

    def set(self, profile: PowerProfile) -> None:
        """Give all policies this profile.

        Raises:
            HapteraError: a driver has no governor for it, or the kernel refuses a value.
        """
        for one in self.policies():
            wanted = one.wanted(profile, self._settings.percent(profile))
            if wanted is None:
                what = f"{one.path} has no governor for {profile}, only {' '.join(one.governors)}"
                raise HapteraError(what, do="desire another profile, or load a governor's module")
            # The governor first: of `performance`, no preference can be set.
            self._write(one, "scaling_governor", wanted.governor)
            if wanted.preference is not None:
                self._write(one, "energy_performance_preference", wanted.preference)
            self._write(one, "scaling_max_freq", str(wanted.khz_max))

    def policies(self) -> list[CpufreqPolicy]:
        """All policies whose processors are online.

        Raises:
            HapteraError: there is none.
        """
        found = [*self._policies()]
        if not found:
            what = f"{self._tree.root / POLICIES} has no policy that can be read"
            do = "let the kernel set frequencies (firmware: power management by the OS), or take"
            raise HapteraError(what, do=f"{do} module cpufreq from this node")
        return found

    def _policies(self) -> Iterator[CpufreqPolicy]:
        tree = self._tree
        for name in tree.names(POLICIES, r"policy[0-9]{1,5}"):
            path = f"{POLICIES}/{name}"
            governor = (tree.text(f"{path}/scaling_governor") or "").strip()
            numbers = ("scaling_max_freq", "cpuinfo_min_freq", "cpuinfo_max_freq")
            khz_max, low, high = (tree.number(f"{path}/{one}") for one in numbers)
            if not governor or khz_max is None or low is None or high is None:
                continue  # its processors are offline
            preference = (tree.text(f"{path}/energy_performance_preference") or "").strip()
            yield CpufreqPolicy(
                path,
                (tree.text(f"{path}/scaling_driver") or "").strip(),
                PolicySetting(governor, preference or None, khz_max),
                self._words(f"{path}/scaling_available_governors"),
                self._words(f"{path}/energy_performance_available_preferences"),
                low,
                high,
            )

    def _profile(self, one: CpufreqPolicy) -> PowerProfile:
        """The profile that a policy has: of several that it may be, the one that allows least."""
        for profile in (PowerProfile.POWERSAVE, PowerProfile.BALANCED, PowerProfile.PERFORMANCE):
            wanted = one.wanted(profile, self._settings.percent(profile))
            if wanted is not None and one.now.holds(wanted):
                return profile
        return PowerProfile.OTHER

    def _words(self, path: str) -> tuple[str, ...]:
        return tuple((self._tree.text(path) or "").split())

    def _write(self, one: CpufreqPolicy, name: str, text: str) -> None:
        try:
            self._tree.write(f"{one.path}/{name}", text)
        except OSError as error:
            what = f"the kernel refuses {text!r}: {error.strerror}"
            where = str(self._tree.root / one.path / name)
            raise HapteraError(what, where=where, do="see the kernel's log") from error
