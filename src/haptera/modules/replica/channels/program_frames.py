"""The frames of a program, each checked where it comes in: nothing else goes to the carrier.

What is stored is heard by others for as long as it is kept, so that one bad frame would be theirs.
"""

from typing import Annotated, Final

import msgspec

from haptera.app.channel_talk import Header

# The largest number of a message that a signed field of 64 bits holds.
NUMBER_MAX: Final = 2**63 - 1
Number = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]


class HelloFrame(msgspec.Struct, frozen=True):
    """The first frame: the program begins, or goes on after this number of its input."""

    number: Number | None = None
    heard: dict[str, Number] = {}
    blob: str = ""
    have: Number = 0


class EmitFrame(msgspec.Struct, frozen=True):
    """An output; its data follows."""

    number: Number
    nth: Annotated[int, msgspec.Meta(ge=1, le=NUMBER_MAX)]


class OfferFrame(msgspec.Struct, frozen=True):
    """The program can supply its state."""


class PieceFrame(msgspec.Struct, frozen=True):
    """The next piece of a state follows."""


class SuppliedFrame(msgspec.Struct, frozen=True):
    """The state is whole."""

    number: Number
    heard: dict[str, Number]
    digest: str
    bytes: Number


ProgramFrame = HelloFrame | EmitFrame | OfferFrame | PieceFrame | SuppliedFrame
_FRAMES: Final[dict[str, type[ProgramFrame]]] = {
    "hello": HelloFrame,
    "emit": EmitFrame,
    "offer": OfferFrame,
    "piece": PieceFrame,
    "supplied": SuppliedFrame,
}


def program_frame(header: Header) -> ProgramFrame | None:
    """Check the header of a frame; None: it is of a later haptera.

    >>> program_frame({"op": "emit", "number": 8, "nth": 1, "size": 3})
    EmitFrame(number=8, nth=1)

    Raises:
        ConnectionError: a member of it is not what it is to be.
    """
    op = header.get("op")
    shape = _FRAMES.get(op) if isinstance(op, str) else None
    if shape is None:
        return None
    try:
        return msgspec.convert(header, shape)
    except msgspec.ValidationError as error:
        raise ConnectionError(f"a frame {op}: {error}") from None
