"""Answers of a BMC over IPMI, as ipmitool words them, by what they say of a command's effect."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from haptera.modules.effects import (
    DeviceError,
    Effect,
    LoginError,
    NotYetError,
    failure_of,
)
from haptera.sdk import HapteraError


@dataclass(frozen=True, slots=True)
class Completion:
    """One completion code: ipmitool's words for it, and the effect that the command has had."""

    code: int
    words: str
    effect: Effect


# IPMI 2.0 (revision 1.1), table 5-2, generic completion codes.
COMPLETIONS: Final = (
    Completion(0xC0, "Node busy", Effect.NOT_YET),
    Completion(0xC1, "Invalid command", Effect.LACKING),
    Completion(0xC2, "Invalid command on LUN", Effect.LACKING),
    # *Timeout while processing command. Response unavailable.*
    Completion(0xC3, "Timeout", Effect.UNKNOWN),
    Completion(0xC4, "Out of space", Effect.NOT_YET),
    Completion(0xC5, "Reservation cancelled or invalid", Effect.NOT_YET),
    Completion(0xC6, "Request data truncated", Effect.LACKING),
    Completion(0xC7, "Request data length invalid", Effect.LACKING),
    Completion(0xC8, "Request data field length limit exceeded", Effect.LACKING),
    Completion(0xC9, "Parameter out of range", Effect.LACKING),
    Completion(0xCA, "Cannot return number of requested data bytes", Effect.NEVER),
    Completion(0xCB, "Requested sensor, data, or record not found", Effect.LACKING),
    Completion(0xCC, "Invalid data field in request", Effect.LACKING),
    Completion(0xCD, "Command illegal for specified sensor or record type", Effect.LACKING),
    # *Command response could not be provided*: nothing is said of the command.
    Completion(0xCE, "Command response could not be provided", Effect.UNKNOWN),
    # The first one of the two may have been done.
    Completion(0xCF, "Cannot execute duplicated request", Effect.UNKNOWN),
    Completion(0xD0, "SDR Repository in update mode", Effect.NOT_YET),
    Completion(0xD1, "Device firmeware in update mode", Effect.NOT_YET),  # so spelt by ipmitool
    Completion(0xD2, "BMC initialization in progress", Effect.NOT_YET),
    Completion(0xD3, "Destination unavailable", Effect.NOT_YET),
    # Of who asks: a soft shutdown can be had, by others.
    Completion(0xD4, "Insufficient privilege level", Effect.NEVER),
    Completion(0xD5, "Command not supported in present state", Effect.LACKING),
    Completion(0xD6, "Cannot execute command, command disabled", Effect.LACKING),
    Completion(0xFF, "Unspecified error", Effect.UNKNOWN),
    # Of Set System Boot Options (table 28-14): no such parameter, another one is at it, read-only.
    Completion(0x80, "Unknown (0x80)", Effect.LACKING),
    Completion(0x81, "Unknown (0x81)", Effect.NOT_YET),
    Completion(0x82, "Unknown (0x82)", Effect.NEVER),
)
_BY_WORDS: Final = {one.words: one for one in COMPLETIONS}

# Where no session comes about (table 13-15, RMCP+ and RAKP message status codes).
_LOGIN: Final = re.compile(
    r"RAKP 2 HMAC is invalid|unauthorized (?:name|role requested|GUID)|invalid role"
    r"|invalid integrity check value|invalid name length"
)
_CIPHER: Final = re.compile(
    r"(?:invalid|no matching) (?:authentication|integrity|confidentiality|cipher)[a-z ]*"
)
_FULL: Final = re.compile(r"insufficient resources for (?:session|role)")


def fields_of(printed: str) -> Mapping[str, str]:
    r"""What ipmitool prints as `NAME : TEXT`; of a name that comes twice, the first.

    >>> fields_of("Firmware Revision     : 9.08\nsession handle : 1\n")["Firmware Revision"]
    '9.08'
    """
    found = dict[str, str]()
    for line in printed.splitlines():
        name, colon, text = line.partition(":")
        if colon and text.strip():
            found.setdefault(name.strip(), text.strip())
    return found


def failure(bmc: str, errors: str, last: str) -> Exception:
    """What to raise of an ipmitool that failed: all of its words, and the last of their lines."""
    if "Unable to establish" in errors:
        return _no_session(bmc, errors)
    _, failed, words = last.rpartition(" failed: ")
    if not failed:
        return DeviceError(f"{bmc}: {last}")
    known = _BY_WORDS.get(words)
    if known is None:  # A code of the maker's own.
        return DeviceError(f"{bmc}: {last}")
    return failure_of(known.effect, f"{words} ({known.code:02X}h)")


def _no_session(bmc: str, errors: str) -> Exception:
    if (found := _LOGIN.search(errors)) is not None:
        return LoginError(f"{bmc} refuses the login: {found[0]}")
    if (found := _FULL.search(errors)) is not None:
        return NotYetError(f"{bmc} has no place for a session: {found[0]}")
    if (found := _CIPHER.search(errors)) is not None:
        what = f"{bmc} does not have this cipher suite: {found[0].strip()}"
        return HapteraError(what, do="set `cipher_suite: 3`, or the one that it has")
    return DeviceError(f"{bmc} does not answer")
