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

# Where no session comes about: the status codes of RMCP+ and RAKP messages (table 13-15); and the
# completion codes of Activate Session (22-21) and Set Session Privilege Level (22-23).
_REFUSED: Final = (
    "RAKP 2 HMAC is invalid",
    "unauthorized name",
    "unauthorized role requested",
    "unauthorized GUID",
    "invalid role",
    "invalid integrity check value",
    "invalid name length",
    "Invalid user name",
    "NULL user name not enabled",
    "Requested privilege level exceeds limit",
    "Insufficient privilege level",
)
_NO_PLACE: Final = (
    "insufficient resources for session",
    "insufficient resources for role",
    "No session slot available",
    "No slot available",
)
# Those of them that ipmitool has, for a test to find there.
SESSION_WORDS: Final = (*_REFUSED, *_NO_PLACE)
_LOGIN: Final = re.compile(
    rf"{'|'.join(_REFUSED)}|Set Session Privilege Level to \w+ failed: Unknown \(0x8[012]\)"
)
_CIPHER: Final = re.compile(
    r"(?:invalid|no matching) (?:authentication|integrity|confidentiality|cipher)[a-z ]*"
)
_FULL: Final = re.compile("|".join(_NO_PLACE))
_NO_ADDRESS: Final = re.compile(r"Address lookup for .* failed")
# A session that was lost ends with an error of its own, after that of its command.
_CLOSING: Final = ("Close Session", "Failed to Close Session")


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


def failure(bmc: str, errors: str) -> Exception:
    """The error of an ipmitool that failed, by all of its words."""
    if "Unable to establish" in errors:
        return _no_session(bmc, errors)
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    last = next((one for one in reversed(lines) if not one.startswith(_CLOSING)), "no words")
    _, failed, words = last.rpartition(" failed: ")
    known = _BY_WORDS.get(words) if failed else None
    if known is None:  # No answer, or a code of the maker's own.
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
    if (found := _NO_ADDRESS.search(errors)) is not None:
        return DeviceError(f"{bmc}: {found[0]}")
    return DeviceError(f"{bmc} does not answer")
