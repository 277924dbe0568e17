"""The calls of NVIDIA's management library that are used here, typed, as its API describes them.

The library is part of the driver and is loaded when first asked. A symbol that an older one lacks,
a query that a GPU does not support, and a number whose bits are all set (NVML_VALUE_NOT_AVAILABLE)
are no number.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_char, c_char_p, c_int, c_uint, c_ulonglong, c_void_p
from enum import IntEnum
from typing import Final, Self

from haptera.sdk import HapteraError

# GPUs that are asked whether they are there.
GPUS_MAX: Final = 256


class NvmlReturn(IntEnum):
    """The results (nvmlReturn_t) that are told apart."""

    SUCCESS = 0
    NOT_FOUND = 6
    INSUFFICIENT_POWER = 8
    IRQ_ISSUE = 11
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    UNKNOWN = 999


LOST: Final = {NvmlReturn.GPU_IS_LOST, NvmlReturn.RESET_REQUIRED}
# Why the driver gives no handle of a GPU that it counts: drivers say of one that has fallen off the
# bus that the error is unknown. Not for lack of a permission.
UNREACHABLE: Final = LOST | {
    NvmlReturn.NOT_FOUND,
    NvmlReturn.INSUFFICIENT_POWER,
    NvmlReturn.IRQ_ISSUE,
    NvmlReturn.UNKNOWN,
}


class PciInfo(ctypes.Structure):
    """The address of a GPU on the PCI bus (nvmlPciInfo_t, version 3)."""

    _fields_ = (
        ("bus_id_legacy", c_char * 16),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("pci_device_id", c_uint),
        ("pci_subsystem_id", c_uint),
        ("bus_id", c_char * 32),
    )

    def __str__(self) -> str:
        """As the kernel names it: `0000:3b:00.0`."""
        return f"{self.domain:04x}:{self.bus:02x}:{self.device:02x}.0"


class Nvml:
    """The library while it is initialized."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    @classmethod
    @contextmanager
    def opened(cls, path: str) -> Iterator[Self | None]:
        """Initialize it, and end that afterwards: a GPU that is in use can not be reset.

        It is None where the machine has no such library.

        Raises:
            HapteraError: it cannot be loaded, or the driver does not answer it.
        """
        try:
            one = cls(ctypes.CDLL(path))
        except OSError as error:
            # The loader has no other way to say it.
            if "No such file or directory" not in str(error):
                what, do = f"cannot be loaded: {error}", "install the driver anew"
                raise HapteraError(what, where=path, do=do) from None
            yield None
            return
        if (code := one.call("nvmlInit_v2")) != NvmlReturn.SUCCESS:
            what = f"the driver does not answer: {one.words(code)}"
            raise HapteraError(what, where=path, do="see nvidia-smi, and the kernel's log")
        try:
            yield one
        finally:
            one.call("nvmlShutdown")

    def call(self, symbol: str, *arguments: object) -> int:
        """The result of a function; one that the library lacks has FUNCTION_NOT_FOUND."""
        try:
            function = getattr(self._library, symbol)
        except AttributeError:
            return NvmlReturn.FUNCTION_NOT_FOUND
        function.restype = c_int
        code: int = function(*arguments)
        return code

    def words(self, code: int) -> str:
        """A result in the library's own words."""
        try:
            function = self._library.nvmlErrorString
        except AttributeError:
            return f"error {code}"
        function.restype = c_char_p
        text: bytes | None = function(c_int(code))
        return f"error {code}" if text is None else text.decode(errors="replace")

    def gpus(self) -> list["Gpu"] | None:
        """All GPUs of the driver, lost ones too; None where it does not say."""
        count = c_uint()
        code = self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        if code != NvmlReturn.SUCCESS or (there := _said(count)) is None:
            return None
        return [self._gpu(index) for index in range(min(there, GPUS_MAX))]

    def _gpu(self, index: int) -> "Gpu":
        handle = c_void_p()
        symbol = "nvmlDeviceGetHandleByIndex_v2"
        code = self.call(symbol, c_uint(index), ctypes.byref(handle))
        return Gpu(self, handle if code == NvmlReturn.SUCCESS else None, code)


class Gpu:
    """One GPU; `is_lost` once a function has said so."""

    def __init__(self, nvml: Nvml, handle: c_void_p | None, code: int) -> None:
        self._nvml, self._handle = nvml, handle
        self.is_lost = code in UNREACHABLE

    def place(self) -> str | None:
        """Its place on the bus: indices change when a GPU is lost, and names are not unique."""
        info = PciInfo()
        return str(info) if self._call("nvmlDeviceGetPciInfo_v3", ctypes.byref(info)) else None

    def number(self, symbol: str, *arguments: int) -> int | None:
        """A number of 32 bits; `arguments` are enums that the function has before it."""
        return self._one(symbol, c_uint(), *arguments)

    def long(self, symbol: str, *arguments: int) -> int | None:
        """A number of 64 bits, likewise."""
        return self._one(symbol, c_ulonglong(), *arguments)

    def numbers(self, symbol: str, count: int) -> list[int | None]:
        """So many numbers of 32 bits, of one function."""
        found = [c_uint() for _ in range(count)]
        is_known = self._call(symbol, *map(ctypes.byref, found))
        return [_said(one) if is_known else None for one in found]

    def _one(self, symbol: str, found: c_uint | c_ulonglong, *arguments: int) -> int | None:
        enums = map(c_uint, arguments)
        return _said(found) if self._call(symbol, *enums, ctypes.byref(found)) else None

    def _call(self, symbol: str, *arguments: object) -> bool:
        if self._handle is None:
            return False
        code = self._nvml.call(symbol, self._handle, *arguments)
        self.is_lost |= code in LOST
        return code == NvmlReturn.SUCCESS


def _said(found: c_uint | c_ulonglong) -> int | None:
    """A number that a function wrote; None where it wrote that there is none."""
    not_available = type(found)(-1)
    return None if found.value == not_available.value else found.value
