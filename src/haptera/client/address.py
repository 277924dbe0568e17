"""Where an API is: a host and a port, with or without TLS, or a Unix socket on this machine."""

from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from haptera.kinds.host_port import HostPort
from haptera.model.errors import ParseError

_PORTS: Final = {"http": 80, "https": 443}
_UNIX: Final = "unix"


class Host(msgspec.Struct, frozen=True):
    """A host reached over the network."""

    name: str
    port: int
    secure: bool

    @property
    def header(self) -> str:
        """What a request says whom it asks.

        >>> Host("::1", 4270, secure=False).header
        '[::1]:4270'
        """
        return str(HostPort(self.name, self.port))


class UnixSocket(msgspec.Struct, frozen=True):
    """A socket in the file system: its permissions decide who may ask."""

    path: str

    @property
    def header(self) -> str:
        return "localhost"


Address = Host | UnixSocket


def parse_address(url: str) -> Address:
    """The address that a URL names.

    >>> parse_address("http://127.0.0.1:4270")
    Host(name='127.0.0.1', port=4270, secure=False)
    >>> parse_address("unix:/run/haptera/api.sock")
    UnixSocket(path='/run/haptera/api.sock')

    Raises:
        HapteraError: it names none.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ParseError(f"{url!r} is not a URL: {error}", do=_HOW) from None
    if parts.scheme == _UNIX and parts.path.startswith("/") and not parts.netloc:
        return UnixSocket(unquote(parts.path))
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ParseError(f"{url!r} is not a URL", do=_HOW)
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username:
        raise ParseError(f"{url!r} names more than a host and a port", do=_HOW)
    return Host(parts.hostname, port or _PORTS[parts.scheme], parts.scheme == "https")


_HOW: Final = "write http://HOST:PORT, https://HOST:PORT or unix:/PATH"
