"""GPUs by the library of their driver: one of the same symbols that answers from a file."""

import asyncio
import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from haptera.model.reading import SERIES_MAX
from haptera.modules.nvml import (
    MEASURED_MAX,
    NvidiaDriver,
    NvmlSettings,
    gpu_errors,
    gpu_state,
    module,
)
from haptera.sdk import HapteraError, Refused
from haptera.sdk.threads import Threads
from tests.modules.test_sensors import numbers_of

SOURCE = Path(__file__).with_name("fake_nvml.c")
# A GPU that is slowed by heat and power, and one that is newer, older or virtual: it says little.
TWO = {
    "nvmlInit_v2 0": "1",
    "nvmlDeviceGetCount_v2 0": "2",
    "nvmlDeviceGetHandleByIndex_v2 0": "1",
    "nvmlDeviceGetHandleByIndex_v2 1": "1",
    "nvmlDeviceGetPciInfo_v3 0": "0 0x3b 0",
    "nvmlDeviceGetPciInfo_v3 1": "1 0xaf 2",
    "nvmlDeviceGetTemperature 0": "88",
    "nvmlDeviceGetTemperature 1": "41",
    "nvmlDeviceGetTemperatureThreshold 0": "90",
    "nvmlDeviceGetPowerUsage 0": "312500",
    "nvmlDeviceGetEnforcedPowerLimit 0": "700000",
    "nvmlDeviceGetCurrentClocksThrottleReasons 0": "0x45",
    "nvmlDeviceGetTotalEccErrors 0": "12 1",
    "nvmlDeviceGetRemappedRows 0": "2 3 1 0",
    "nvmlDeviceGetPcieReplayCounter 0": "7",
}
FIRST, SECOND = "0000:3b:00.0", "0001:af:02.0"
NUMBERS = [
    one
    for one in TWO
    if one.endswith(" 0")
    and not one.startswith(("nvmlInit", "nvmlDeviceGetHandle", "nvmlDeviceGetPci"))
]
Fake = Callable[[dict[str, str]], NvidiaDriver]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The library, and the file that it answers from."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: apt install gcc")
    folder = tmp_path_factory.mktemp("nvml")
    made, state = folder / "libnvidia-ml.so.1", folder / "state"
    define = f'-DSTATE="{state}"'
    subprocess.run(["cc", "-Wall", "-shared", "-fPIC", define, "-o", made, SOURCE], check=True)
    return made, state


@pytest.fixture
def fake(library: tuple[Path, Path]) -> Fake:
    def state(lines: dict[str, str]) -> NvidiaDriver:
        # At once, for a call may hang that reads it.
        draft = library[1].with_suffix(".new")
        draft.write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
        draft.rename(library[1])
        return driver_of(str(library[0]))

    return state


def driver_of(library: str) -> NvidiaDriver:
    return NvidiaDriver(SimpleNamespace(settings=NvmlSettings(library)))


def state_of(driver: NvidiaDriver) -> dict[str, float]:
    return numbers_of(module, gpu_state(driver))


def errors_of(driver: NvidiaDriver) -> dict[str, float]:
    return numbers_of(module, gpu_errors(driver))


def numbers_at(driver: NvidiaDriver) -> dict[str, float]:
    return state_of(driver) | errors_of(driver)


def test_what_a_gpu_says_is_measured_and_what_it_does_not_support_is_left_out(fake: Fake) -> None:
    driver = fake(TWO)
    assert state_of(driver) == {
        "gpu.count": 2,
        "gpu.lost": 0,
        f"gpu.temp[{FIRST}]": 88,
        f"gpu.temp_margin[{FIRST}]": 2,
        f"gpu.power[{FIRST}]": 312.5,
        f"gpu.power_limit[{FIRST}]": 700,
        f"gpu.slowed_power[{FIRST}]": 1,
        f"gpu.slowed_heat[{FIRST}]": 1,
        f"gpu.slowed_hardware[{FIRST}]": 0,
        f"gpu.temp[{SECOND}]": 41,
    }
    assert errors_of(driver) == {
        f"gpu.ecc.corrected[{FIRST}]": 12,
        f"gpu.ecc.uncorrected[{FIRST}]": 1,
        f"gpu.rows_remapped[{FIRST}]": 5,
        f"gpu.rows_pending[{FIRST}]": 1,
        f"gpu.rows_failed[{FIRST}]": 0,
        f"gpu.pcie_replays[{FIRST}]": 7,
    }


@pytest.mark.parametrize(
    "lost", ["nvmlDeviceGetHandleByIndex_v2 0", "nvmlDeviceGetTemperature 0"], ids=["all", "one"]
)
def test_a_gpu_that_is_lost_is_counted_and_its_numbers_are_unknown(fake: Fake, lost: str) -> None:
    found = state_of(fake({**TWO, lost: "!15"}))
    assert (found["gpu.count"], found["gpu.lost"]) == (2, 1)
    assert f"gpu.temp[{FIRST}]" not in found
    assert f"gpu.temp_margin[{FIRST}]" not in found
    assert found[f"gpu.temp[{SECOND}]"] == 41


@pytest.mark.parametrize(
    ("code", "is_lost"),
    [
        # As drivers say of one that has fallen off the bus, or whose cable is loose.
        *((code, True) for code in (6, 8, 11, 15, 16, 999)),
        # Of who asks, of the library, or of a moment.
        *((code, False) for code in (1, 2, 3, 4, 10, 13, 17, 20, 27)),
    ],
)
def test_a_gpu_that_is_counted_and_cannot_be_reached_is_lost(
    fake: Fake, code: int, is_lost: bool
) -> None:
    found = state_of(fake({**TWO, "nvmlDeviceGetHandleByIndex_v2 0": f"!{code}"}))
    assert (found["gpu.count"], found["gpu.lost"]) == (2, int(is_lost))
    assert f"gpu.temp[{FIRST}]" not in found


def test_a_number_whose_bits_are_all_set_is_none(fake: Fake) -> None:
    """Each number of each function, one after the other: no other becomes another by it."""
    usual = numbers_at(fake(TWO))
    for function in NUMBERS:
        for at in range(len(TWO[function].split())):
            words = TWO[function].split()
            words[at] = "0xffffffffffffffff"
            found = numbers_at(fake({**TWO, function: " ".join(words)}))
            assert found.items() < usual.items(), (function, at)


def test_all_gpus_are_counted_and_as_many_measured_as_there_is_room_for(fake: Fake) -> None:
    lines = dict(TWO)
    for index in range(64):
        lines[f"nvmlDeviceGetHandleByIndex_v2 {index}"] = "!15" if index == 63 else "1"
        lines[f"nvmlDeviceGetPciInfo_v3 {index}"] = f"0 {index} 0"
        lines[f"nvmlDeviceGetTemperature {index}"] = "50"
    found = state_of(fake({**lines, "nvmlDeviceGetCount_v2 0": "64"}))
    assert (found["gpu.count"], found["gpu.lost"]) == (64, 1)
    assert sum(one.startswith("gpu.temp[") for one in found) == MEASURED_MAX
    assert state_of(fake({**lines, "nvmlDeviceGetCount_v2 0": "0xffffffff"})) == {}


def test_a_machine_without_the_library_has_no_numbers_and_a_driver_that_fails_is_told(
    fake: Fake,
) -> None:
    assert state_of(driver_of("libno-such-library.so.1")) == {}
    with pytest.raises(HapteraError, match="the driver does not answer: Driver Not Loaded"):
        gpu_state(fake({"nvmlInit_v2 0": "!9"}))
    # Where the count itself is refused, none is known to be lost either.
    begun = {"nvmlInit_v2 0": "1"}
    assert state_of(fake(begun)) == {}
    none = {"gpu.count": 0, "gpu.lost": 0}
    assert state_of(fake({**begun, "nvmlDeviceGetCount_v2 0": "0"})) == none


@pytest.mark.parametrize("content", [b"", b"\x7fELF" + bytes(60)], ids=["empty", "of no machine"])
def test_a_library_that_is_there_and_cannot_be_loaded_is_told(
    tmp_path: Path, content: bytes
) -> None:
    broken = tmp_path / "libnvidia-ml.so.1"
    broken.write_bytes(content)
    with pytest.raises(HapteraError, match="cannot be loaded"):
        gpu_state(driver_of(str(broken)))
    assert state_of(driver_of(str(tmp_path / "none"))) == {}


@pytest.mark.parametrize("library", ["", "libnvidia-ml.so.1\0"])
def test_a_setting_that_names_no_library_is_refused(library: str) -> None:
    with pytest.raises(ValueError, match="library is a name"):
        NvmlSettings(library)


async def test_a_call_that_hangs_costs_its_own_half_alone_until_it_returns(fake: Fake) -> None:
    driver = fake({**TWO, "nvmlDeviceGetTotalEccErrors 0": "hang"})
    threads = Threads(8)
    errors = partial(gpu_errors, driver)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(threads.run("errors", errors), 0.2)
    with pytest.raises(Refused, match="still runs"):
        await threads.run("errors", errors)
    state = numbers_of(module, await threads.run("state", partial(gpu_state, driver)))
    assert state[f"gpu.temp[{FIRST}]"] == 88
    fake(TWO)
    async with asyncio.timeout(60):
        while True:
            try:
                found = await threads.run("errors", errors)
            except Refused:
                await asyncio.sleep(0)
            else:
                break
    assert numbers_of(module, found)[f"gpu.ecc.corrected[{FIRST}]"] == 12


def test_the_most_gpus_fit_beside_the_other_numbers_of_a_node() -> None:
    families = [
        one for each in module.manifest().samplers for one in each.readings if one.items_max
    ]
    assert len(families) * MEASURED_MAX <= SERIES_MAX


def test_a_real_gpu_is_measured() -> None:
    library = NvmlSettings().library
    try:
        ctypes.CDLL(library)
    except OSError:
        pytest.skip(f"there is no NVIDIA driver here: no {library}")
    driver = driver_of(library)
    state, errors = state_of(driver), errors_of(driver)
    sys.stdout.writelines(f"{one} {value:g}\n" for one, value in (state | errors).items())
    assert state["gpu.count"] >= 1
    assert state["gpu.lost"] == 0
    assert sum(one.startswith("gpu.temp[") for one in state) == state["gpu.count"]
