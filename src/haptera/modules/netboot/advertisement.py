r"""Router advertisements (RFC 4861) that route nothing: they end a wait of iPXE's.

iPXE asks for IPv6 routers beside DHCP and waits for about 13 s where none answers. An advertisement
with a lifetime of 0 and no prefix tells it, and everybody else, that there is nothing to configure.

>>> is_solicitation(b"\x85" + bytes(7)), advertisement().hex()
(True, '86000000400000000000000000000000')
"""

import struct
from typing import Final

_SOLICITATION: Final = 133
_ADVERTISEMENT: Final = 134
_SOLICITATION_BYTES_MIN: Final = 8
_HOP_LIMIT: Final = 64
_MESSAGE: Final = struct.Struct("!BBHBBHII")


def is_solicitation(data: bytes) -> bool:
    """Whether somebody asks which routers there are."""
    return len(data) >= _SOLICITATION_BYTES_MIN and data[0] == _SOLICITATION and data[1] == 0


def advertisement() -> bytes:
    """The answer, its checksum left to the kernel."""
    return _MESSAGE.pack(_ADVERTISEMENT, 0, 0, _HOP_LIMIT, 0, 0, 0, 0)
