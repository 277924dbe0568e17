"""Profiles of processors, by trees of files as kernels have them, under the real engine."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from haptera.kinds.node import PowerProfile
from haptera.modules.cpufreq import module
from haptera.modules.cpufreq.policies import CpufreqSettings, Processors
from haptera.sdk import EntityId, HapteraError, HostPath, Target
from haptera.testing.bench import Bench

POLICIES = "sys/devices/system/cpu/cpufreq"
PREFERENCES = "default performance balance_performance balance_power power"
FREQUENCIES = {"cpuinfo_min_freq": "800000", "cpuinfo_max_freq": "3500000"}
# As the files of each driver read at its start.
HWP = {
    **FREQUENCIES,
    "scaling_driver": "intel_pstate",
    "scaling_governor": "performance",
    "scaling_available_governors": "performance powersave",
    "scaling_max_freq": "3500000",
    "energy_performance_preference": "performance",
    "energy_performance_available_preferences": PREFERENCES,
}
ACPI = {
    **FREQUENCIES,
    "scaling_driver": "acpi-cpufreq",
    "scaling_governor": "userspace",
    "scaling_available_governors": "conservative ondemand userspace powersave performance",
    "scaling_max_freq": "3500000",
}
PSTATE = {name: text for name, text in HWP.items() if not name.startswith("energy")}


def tree_of(root: Path, *policies: Mapping[str, str]) -> Path:
    for number, files in enumerate(policies):
        folder = root / POLICIES / f"policy{number}"
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(f"{text}\n")
    return root


def processors(root: Path, powersave_percent: int = 60) -> Processors:
    settings = CpufreqSettings(HostPath(str(root)), powersave_percent=powersave_percent)
    return Processors(Target(EntityId("node", "n1", None), {}, {}, settings=settings))


def read(root: Path, name: str, policy: int = 0) -> str:
    return (root / POLICIES / f"policy{policy}" / name).read_text().strip()


def settings_of(root: Path, policy: int = 0) -> tuple[str, str | None, str]:
    preference = "energy_performance_preference"
    has = (root / POLICIES / f"policy{policy}" / preference).exists()
    return (
        read(root, "scaling_governor", policy),
        read(root, preference, policy) if has else None,
        read(root, "scaling_max_freq", policy),
    )


@pytest.mark.parametrize(
    ("driver", "profile", "expected"),
    [
        (HWP, PowerProfile.BALANCED, ("powersave", "balance_performance", "3500000")),
        (HWP, PowerProfile.POWERSAVE, ("powersave", "power", "2100000")),
        (ACPI, PowerProfile.PERFORMANCE, ("performance", None, "3500000")),
        (ACPI, PowerProfile.BALANCED, ("ondemand", None, "3500000")),
        (ACPI, PowerProfile.POWERSAVE, ("powersave", None, "2100000")),
        (PSTATE, PowerProfile.BALANCED, ("powersave", None, "3500000")),
        (PSTATE, PowerProfile.POWERSAVE, ("powersave", None, "2100000")),
    ],
)
def test_a_profile_is_set_as_each_driver_has_it(driver, profile, expected, tmp_path) -> None:
    tree_of(tmp_path, driver, driver)

    async def settled() -> str:
        bench = Bench(module, {}, connect=Processors, settings={"root": str(tmp_path)})
        view = await bench.settle({"power_profile": profile, "agent": "up"}, within_s=60)
        return view.observed["power_profile"].value

    assert asyncio.run(settled()) == profile
    assert [settings_of(tmp_path, one) for one in (0, 1)] == [expected, expected]


def test_a_node_whose_processors_disagree_has_another_profile_than_those(tmp_path) -> None:
    tree_of(tmp_path, HWP, {**HWP, "scaling_governor": "powersave"})
    assert processors(tmp_path).profile is PowerProfile.OTHER
    processors(tmp_path).set(PowerProfile.PERFORMANCE)
    assert processors(tmp_path).profile is PowerProfile.PERFORMANCE


def test_a_frequency_below_that_of_the_profile_is_a_limit_for_heat_and_stays(tmp_path) -> None:
    tree_of(tmp_path, {**HWP, "scaling_max_freq": "1200000"})
    assert processors(tmp_path).profile is PowerProfile.PERFORMANCE


def test_the_lowest_frequency_of_the_processor_is_not_undercut(tmp_path) -> None:
    tree_of(tmp_path, HWP)
    processors(tmp_path, powersave_percent=10).set(PowerProfile.POWERSAVE)
    assert settings_of(tmp_path) == ("powersave", "power", "800000")


def test_processors_that_are_offline_are_left_out(tmp_path) -> None:
    tree_of(tmp_path, HWP, {"scaling_available_governors": "performance powersave"})
    assert processors(tmp_path).profile is PowerProfile.PERFORMANCE
    processors(tmp_path).set(PowerProfile.BALANCED)
    assert processors(tmp_path).profile is PowerProfile.BALANCED


def test_a_machine_without_frequencies_says_what_to_do(tmp_path) -> None:
    with pytest.raises(HapteraError, match=r"has no policy that can be read.*power management"):
        _ = processors(tmp_path).profile


def test_a_governor_that_is_missing_is_named_and_nothing_is_set(tmp_path) -> None:
    tree_of(tmp_path, {**ACPI, "scaling_available_governors": "userspace performance"})
    with pytest.raises(HapteraError, match="no governor for balanced, only userspace performance"):
        processors(tmp_path).set(PowerProfile.BALANCED)
    assert settings_of(tmp_path) == ("userspace", None, "3500000")


def test_what_the_kernel_refuses_is_said_with_its_file(tmp_path) -> None:
    tree_of(tmp_path, HWP)
    maximum = tmp_path / POLICIES / "policy0/scaling_max_freq"
    one = processors(tmp_path)
    policies = one.policies()
    maximum.unlink()
    maximum.mkdir()
    with pytest.raises(HapteraError, match="the kernel refuses"):
        one._write(policies[0], "scaling_max_freq", "1")


@pytest.mark.parametrize("percent", [0, 101])
def test_a_share_that_none_can_have_is_refused(percent: int) -> None:
    with pytest.raises(ValueError, match="powersave_percent"):
        CpufreqSettings(powersave_percent=percent)
