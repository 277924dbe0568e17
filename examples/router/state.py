"""A table as octets, for a sibling that begins later: its shortest history."""

import struct
from typing import Final

from bgp.messages import Open, Update, encode, parse, size_of
from routes import Heard, Table

_HEAD: Final = struct.Struct("!BQ")


def dump(table: Table) -> bytes:
    """The table, for `load`."""
    return b"".join(
        _HEAD.pack(len(one.source), one.incarnation) + one.source.encode() + encode(one.message)
        for one in table.history()
    )


def load(octets: bytes, table: Table) -> None:
    """Make an empty table the one that was dumped."""
    at = 0
    while at < len(octets):
        size, incarnation = _HEAD.unpack_from(octets, at)
        at += _HEAD.size
        source = octets[at : at + size].decode()
        at += size
        end = at + size_of(octets[at : at + 19])
        message = parse(octets[at:end])
        assert isinstance(message, Open | Update)
        table.apply(Heard(source, incarnation, message))
        at = end
