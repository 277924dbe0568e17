"""What a node measures of itself, by trees of files as kernels have them, and as nobody does."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.model.reading import fitting
from haptera.modules.kernel_tree import TEXT_BYTES_MAX, KernelTree
from haptera.modules.sensors import kernel, temperatures
from haptera.modules.sensors.checks import CheckProgram, CodeStyle, checked
from haptera.modules.sensors.module import module, used_percent
from haptera.sdk import Command, HapteraError, Measured, Module

MC = "sys/devices/system/edac/mc/mc0"
HWMON = "sys/class/hwmon"
SERVER = {
    f"{HWMON}/hwmon0/name": "coretemp\n",
    f"{HWMON}/hwmon0/temp1_input": "51000\n",
    f"{HWMON}/hwmon0/temp1_label": "Package id 0\n",
    f"{HWMON}/hwmon1/name": "coretemp\n",
    f"{HWMON}/hwmon1/temp1_input": "48500\n",
    f"{HWMON}/hwmon1/temp1_label": "Package id 1\n",
    f"{HWMON}/hwmon2/name": "bmc_sensors\n",
    f"{HWMON}/hwmon2/temp1_input": "23000\n",
    f"{HWMON}/hwmon2/temp1_label": "Inlet Ambient\n",
    f"{HWMON}/hwmon2/temp2_input": "24500\n",
    f"{HWMON}/hwmon2/temp2_label": "Front Panel\n",
    f"{HWMON}/hwmon2/temp3_input": "31000\n",
    f"{HWMON}/hwmon2/fan1_input": "5400\n",
    f"{HWMON}/hwmon3/name": "power_meter\n",
    f"{HWMON}/hwmon3/power1_average": "412000000\n",
    f"{HWMON}/hwmon4/name": "amdgpu\n",
    f"{HWMON}/hwmon4/power1_input": "251500000\n",
    f"{HWMON}/hwmon4/power1_average": "250000000\n",
    "sys/class/thermal/thermal_zone0/type": "acpitz\n",
    "sys/class/thermal/thermal_zone0/temp": "27800\n",
    f"{MC}/dimm0/dimm_ce_count": "3\n",
    f"{MC}/dimm0/dimm_ue_count": "0\n",
    f"{MC}/dimm1/dimm_ce_count": "0\n",
    f"{MC}/dimm1/dimm_ue_count": "1\n",
    "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "2\n",
    "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count": "7\n",
    "sys/devices/system/cpu/cpu10/thermal_throttle/core_throttle_count": "5\n",
    "sys/devices/system/cpu/cpu10/thermal_throttle/package_throttle_count": "7\n",
    "sys/devices/system/cpu/cpufreq/thermal_throttle/core_throttle_count": "99\n",
    "proc/pressure/memory": "some avg10=1.50 avg60=0.10 avg300=0.00 total=9\n"
    "full avg10=0.25 avg60=0.00 avg300=0.00 total=4\n",
    "proc/meminfo": "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    250 kB\n",
    "sys/class/net/eth0/device/uevent": "",
    "sys/class/net/eth0/statistics/rx_errors": "4\n",
    "sys/class/net/eth0/statistics/tx_errors": "1\n",
    "sys/class/net/lo/statistics/rx_errors": "8\n",
}
SAMPLERS = (
    temperatures.temperatures,
    kernel.memory_errors,
    kernel.load,
    kernel.network_errors,
)


def tree_of(root: Path, files: Mapping[str, str]) -> KernelTree:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return KernelTree(root)


def numbers(measured: Measured) -> dict[str, float]:
    return numbers_of(module, measured)


def numbers_of(module: Module[Any], measured: Measured) -> dict[str, float]:
    """What of it is a number that the module declares: as its host tells it."""
    declared = {one.name: one for sampler in module.manifest().samplers for one in sampler.readings}
    named: dict[Any, float] = {
        key if isinstance(key, str) else key.series(): value
        for key, value in measured.items()
        if value is not None
    }
    return {str(series): value for series, value in fitting(declared, named).items()}


def test_a_server_is_measured_sort_by_sort(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, SERVER)
    assert numbers(temperatures.temperatures(tree)) == {
        "temp.inlet": 24.5,
        "temp.cpu[coretemp/Package_id_0]": 51.0,
        "temp.cpu[coretemp#2/Package_id_1]": 48.5,
        "temp.other[bmc_sensors/temp3]": 31.0,
        "temp.other[thermal_zone0/acpitz]": 27.8,
        "fan.speed[bmc_sensors/fan1]": 5400,
        "power.machine": 412.0,
        "power.other[amdgpu/power1]": 250.0,
    }
    assert numbers(kernel.memory_errors(tree)) == {
        "ecc.corrected[mc0/dimm0]": 3,
        "ecc.uncorrected[mc0/dimm0]": 0,
        "ecc.corrected[mc0/dimm1]": 0,
        "ecc.uncorrected[mc0/dimm1]": 1,
    }
    assert numbers(kernel.load(tree)) == {
        "cpu.throttles[core]": 7,
        "cpu.throttles[package]": 7,
        "psi.memory_some": 1.5,
        "psi.memory_full": 0.25,
        "memory.used_percent": 75.0,
    }
    assert numbers(kernel.network_errors(tree)) == {"net.errors[eth0]": 5}


def test_an_older_kernel_counts_memory_errors_by_rows_and_channels(tmp_path: Path) -> None:
    row = f"{MC}/csrow0"
    files = {f"{row}/ch0_ce_count": "2", f"{row}/ch1_ce_count": "0", f"{row}/ue_count": "1"}
    assert numbers(kernel.memory_errors(tree_of(tmp_path, files))) == {
        "ecc.corrected[mc0/csrow0/ch0]": 2,
        "ecc.corrected[mc0/csrow0/ch1]": 0,
        "ecc.uncorrected[mc0/csrow0]": 1,
    }


def test_what_a_machine_lacks_is_unknown_and_not_zero(tmp_path: Path) -> None:
    tree = KernelTree(tmp_path / "nowhere")
    assert [numbers(measure(tree)) for measure in SAMPLERS] == [{}] * len(SAMPLERS)
    assert used_percent(tmp_path, "/nowhere") is None


@given(st.dictionaries(st.sampled_from(sorted(SERVER)), st.binary(max_size=60)))
def test_whatever_the_files_say_what_is_told_are_numbers(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    tree = tree_of(root, SERVER)
    for name, content in files.items():
        (root / name).write_bytes(content)
    for measure in SAMPLERS:
        assert all(abs(value) < 1e18 for value in numbers(measure(tree)).values())


@pytest.mark.parametrize("path", [*SERVER, "proc/pressure/cpu"])
def test_what_is_no_file_neither_blocks_nor_says_anything(path: str, tmp_path: Path) -> None:
    tree = tree_of(tmp_path, SERVER)
    place = tmp_path / path
    place.unlink(missing_ok=True)
    # To open a FIFO would be to wait for who writes to it.
    os.mkfifo(place)
    for measure in SAMPLERS:
        measure(tree)
    assert tree.text(path) is None
    place.unlink()
    place.symlink_to(place)
    for measure in SAMPLERS:
        measure(tree)
    assert tree.number(path) is None


def test_a_huge_file_is_read_in_part(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {"proc/meminfo": "x" * (TEXT_BYTES_MAX + 9)})
    assert len(tree.text("proc/meminfo") or "") == TEXT_BYTES_MAX


def test_a_file_system_is_as_full_as_its_users_find_it(tmp_path: Path) -> None:
    used = used_percent(tmp_path, "/")
    assert used is not None
    assert 0 <= used <= 100


def program(folder: Path, text: str) -> Command:
    path = folder / "check"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return Command(f"{path} -w 80")


@pytest.mark.net
@pytest.mark.parametrize(
    ("text", "codes", "value"),
    [
        ("exit 0", CodeStyle.NAGIOS, 0.0),
        ("echo WARNING; exit 1", CodeStyle.NAGIOS, 1.0),
        ("yes | head -c 1000000; exit 2", CodeStyle.NAGIOS, 2.0),
        ("exit 3", CodeStyle.NAGIOS, None),
        ("exit 1", CodeStyle.SLURM, 2.0),
        ("kill -9 $$", CodeStyle.SLURM, None),
        ("sleep 600 & wait", CodeStyle.SLURM, None),
    ],
)
def test_a_check_says_by_its_exit_code_how_a_machine_is(
    text: str, codes: CodeStyle, value: float | None, tmp_path: Path
) -> None:
    check = CheckProgram("disks", program(tmp_path, text), codes)
    within_s = 0.2 if "sleep" in text else 10
    assert asyncio.run(checked([check], within_s)) == {"check.state[disks]": value}


@pytest.mark.net
def test_a_check_that_cannot_be_run_says_nothing_and_harms_no_other(tmp_path: Path) -> None:
    checks = [
        CheckProgram("gone", Command("/nowhere/check")),
        CheckProgram("well", program(tmp_path, "exit 0")),
    ]
    assert asyncio.run(checked(checks, 10)) == {"check.state[gone]": None, "check.state[well]": 0.0}


@pytest.mark.parametrize("command", ["", "  ", "'half"])
def test_a_check_without_a_command_is_refused(command: str) -> None:
    with pytest.raises(HapteraError):
        module.settings({"checks": [{"name": "disks", "command": command}]})


def test_settings_of_checks_are_read(tmp_path: Path) -> None:
    settings = module.settings(
        {"disks": ["/", "/scratch"], "checks": [{"name": "d", "command": "x", "codes": "slurm"}]}
    )
    assert settings.checks == (CheckProgram("d", Command("x"), CodeStyle.SLURM),)
