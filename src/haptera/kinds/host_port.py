"""Addresses of devices as people write them: a host, an IPv4 or an IPv6 address, and a port."""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address
from typing import Final

from haptera.model.errors import HapteraError

PORT_MAX: Final = 65_535
# A name, or an address of IPv4; a hyphen first would be an option of the tool that is given it.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_DO: Final = "write ADDRESS or ADDRESS:PORT, and an IPv6 address with a port as [ADDRESS]:PORT"


@dataclass(frozen=True, slots=True)
class HostPort:
    """Where a device listens; the text of one has brackets about an IPv6 address."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, default_port: int | None) -> "HostPort":
        """Of `HOST`, `HOST:PORT`, `IPV6`, `[IPV6]` or `[IPV6]:PORT`.

        More than one colon without brackets is an address of IPv6, whatever it ends with.

        >>> [str(HostPort.parse(text, 623)) for text in ("bmc1:6230", "2001:db8::21", "[::1]:99")]
        ['bmc1:6230', '[2001:db8::21]:623', '[::1]:99']

        Raises:
            HapteraError: it is none of these, or has no port where no default is known.
        """
        if text.startswith("["):
            host, closed, rest = text[1:].partition("]")
            fits = closed == "]" and _is_ipv6(host) and rest[:1] in ("", ":")
        elif text.count(":") > 1:
            host, rest, fits = text, "", _is_ipv6(text)
        else:
            host, colon, number = text.partition(":")
            rest, fits = colon + number, _NAME.fullmatch(host) is not None
        port = _port(rest[1:]) if rest else default_port
        if not fits or port is None:
            raise HapteraError(f"{text!r} is not the address of a device", do=_DO)
        return cls(host, port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _port(text: str) -> int | None:
    fits = _PORT.fullmatch(text) is not None and 0 < int(text) <= PORT_MAX
    return int(text) if fits else None


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True
