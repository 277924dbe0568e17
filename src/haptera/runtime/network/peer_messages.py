"""Requests between parent and agent over TLS: one request, one answer, each a frame."""

import asyncio
from typing import Annotated, Final

import msgspec

from haptera.core.state.limits import RECALLED_MAX
from haptera.model.answers.views import EntityView
from haptera.model.declared.remote_schema import ToldSchema
from haptera.model.entity import EntityId
from haptera.model.messages import Mark
from haptera.queue.work import WorkAsked, WorkTold
from haptera.rest.exec import STDIN_BYTES_MAX, WITHIN_S_MAX, WORDS_MAX
from haptera.runtime.network.one_frame import hear

LOG_BYTES_MAX: Final = 64 * 1024

Whole = Annotated[int, msgspec.Meta(ge=0)]


class EntityAsked(msgspec.Struct, frozen=True, tag_field="op", tag="entity"):
    """How the other side sees this entity: its chain, and what it has tried."""

    entity: EntityId


class LogPlace(msgspec.Struct, frozen=True):
    """A place in a log: the inode of its file, and an offset in bytes."""

    file: Whole
    offset: Whole


class LogAsked(msgspec.Struct, frozen=True, tag_field="op", tag="log"):
    """What a module or a service has written: what follows a place, or the end of it."""

    entity: EntityId
    size_bytes: Annotated[int, msgspec.Meta(ge=1, le=LOG_BYTES_MAX)] = LOG_BYTES_MAX
    after: LogPlace | None = None


class ExecAsked(msgspec.Struct, frozen=True, tag_field="op", tag="exec"):
    """Run a command on the node, or in a system there; without `stdin` it reads nothing."""

    entity: EntityId
    words: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=WORDS_MAX)]
    within_s: Annotated[int, msgspec.Meta(ge=1, le=WITHIN_S_MAX)]
    stdin: Annotated[bytes, msgspec.Meta(max_length=STDIN_BYTES_MAX)] | None = None


class ListAsked(msgspec.Struct, frozen=True, tag_field="op", tag="list"):
    """The entities that the other side sends, with their versions."""


class SchemaAsked(msgspec.Struct, frozen=True, tag_field="op", tag="schema"):
    """Which numbers the other side's values have, and which modules it runs."""


class RecallAsked(msgspec.Struct, frozen=True, tag_field="op", tag="recall"):
    """Tell of these entities again."""

    entities: Annotated[tuple[EntityId, ...], msgspec.Meta(max_length=RECALLED_MAX)]


class RetryAsked(msgspec.Struct, frozen=True, tag_field="op", tag="retry"):
    """Try this entity again at once: a person asks."""

    entity: EntityId


class RenewAsked(msgspec.Struct, frozen=True, tag_field="op", tag="renew"):
    """A new certificate for the key of this request, in PEM."""

    request: bytes


class SecretAsked(msgspec.Struct, frozen=True, tag_field="op", tag="secret"):
    """A secret that the settings of a module on this node name."""

    name: str


Request = (
    EntityAsked
    | ExecAsked
    | ListAsked
    | LogAsked
    | RecallAsked
    | RenewAsked
    | RetryAsked
    | SchemaAsked
    | SecretAsked
    | WorkAsked
)


class EntityTold(msgspec.Struct, frozen=True, tag_field="op", tag="entity told"):
    view: EntityView


class LogTold(msgspec.Struct, frozen=True, tag_field="op", tag="log told"):
    """A part of a log, and where it begins: not at the place asked for if the log began anew."""

    text: bytes
    begin: LogPlace


class ExecTold(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="op", tag="exec told"):
    """What a command wrote, as it comes; the last one has its exit status. Empty: it still runs."""

    stdout: bytes = b""
    stderr: bytes = b""
    status: int | None = None
    why: str | None = None


class ListTold(msgspec.Struct, frozen=True, tag_field="op", tag="list told"):
    """The layer that a process sends: its boot-id, the layer's mark, all that counts in it."""

    boot: int
    mark: Mark
    versions: list[tuple[EntityId, Whole]]


class SchemaTold(msgspec.Struct, frozen=True, tag_field="op", tag="schema told"):
    schema: ToldSchema


class Noted(msgspec.Struct, frozen=True, tag_field="op", tag="noted"):
    """It will be done."""


class Renewed(msgspec.Struct, frozen=True, tag_field="op", tag="renewed"):
    certificate: bytes


class SecretTold(msgspec.Struct, frozen=True, tag_field="op", tag="secret told"):
    value: str

    def __repr__(self) -> str:
        return "SecretTold()"


class Unable(msgspec.Struct, frozen=True, tag_field="op", tag="unable"):
    """There is no answer: why, in words for people."""

    text: str


Answer = (
    SecretTold | EntityTold | LogTold | ListTold | SchemaTold | Noted | Renewed | WorkTold | Unable
)

# What comes of a command, one after the other.
ExecAnswer = ExecTold | Unable


async def hear_request(reader: asyncio.StreamReader) -> Request | None:
    """The first thing said; None where the other side hangs up, or asks for what is none."""
    request: Request | None = await hear(reader, Request)
    return request


async def hear_answer(reader: asyncio.StreamReader) -> Answer | None:
    """The first thing said; None where the other side hangs up, or says what is no answer."""
    answer: Answer | None = await hear(reader, Answer)
    return answer
