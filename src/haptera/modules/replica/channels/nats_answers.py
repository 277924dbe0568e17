"""Answers of a NATS server with JetStream: of each, what its question needs, and no more."""

import base64
from typing import TypeVar

import msgspec


class ServerFault(msgspec.Struct, frozen=True):
    """The reason for which it did not do what it was asked."""

    err_code: int = 0
    description: str = ""


class ServerAnswer(msgspec.Struct, frozen=True):
    """Any answer, of which no more is needed than that it is no fault."""


class StoredOne(ServerAnswer, frozen=True):
    """The number of what was stored."""

    seq: int


class StreamMessage(StoredOne, frozen=True):
    """A message of a stream; its headers and its content are in base64."""

    hdrs: str = ""
    data: str = ""

    def headers(self) -> dict[str, str]:
        """Its headers.

        Raises:
            ValueError: they are none.
        """
        lines = base64.b64decode(self.hdrs).decode().split("\r\n")
        return {name: value.strip() for name, _, value in (one.partition(":") for one in lines[1:])}


class FoundMessage(ServerAnswer, frozen=True):
    """The message that was asked for."""

    message: StreamMessage


class StreamBoundsFound(msgspec.Struct, frozen=True):
    """The numbers of the first and the last message of a stream."""

    first_seq: int
    last_seq: int


class StreamInfo(ServerAnswer, frozen=True):
    """The state of a stream."""

    state: StreamBoundsFound


class MadeReader(ServerAnswer, frozen=True):
    """The name of a reader."""

    name: str


class _Faulty(msgspec.Struct, frozen=True):
    error: ServerFault | None = None


Answer = TypeVar("Answer", bound=ServerAnswer)


def read_answer(content: bytes, shape: type[Answer]) -> Answer | ServerFault:
    """An answer of this shape, or the fault that it tells.

    Raises:
        ValueError, RecursionError: it is neither.
    """
    fault = msgspec.json.decode(content, type=_Faulty).error
    return msgspec.json.decode(content, type=shape) if fault is None else fault
