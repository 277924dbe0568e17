"""Channels carried by JetStream: streams of a NATS server, over its API.

`in-GROUP` has the streams that the group hears as its sources, so the server merges them into one
order; `out-GROUP` holds what it says, and `state-GROUP` the states that were handed over.
"""

import asyncio
import base64
import json
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import msgspec
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from haptera.app.channel_events import MESSAGE_BYTES_MAX
from haptera.modules.replica.channels.carrier import (
    ANSWER_WITHIN_S,
    STREAM_BYTES_MAX,
    STREAM_MESSAGES_MAX,
    CarrierError,
    ChangedEndError,
    StreamBounds,
    SuppliedState,
    Voice,
    group_of,
    token,
)
from haptera.modules.replica.channels.inbox import StoredMessage
from haptera.modules.replica.channels.nats_answers import (
    Answer,
    FoundMessage,
    MadeReader,
    ServerAnswer,
    ServerFault,
    StoredOne,
    StreamInfo,
    StreamMessage,
    read_answer,
)
from haptera.modules.replica.channels.outbox import (
    EMPTY,
    NumberedOutput,
    OutputPosition,
    PublishOutput,
    StreamEnd,
    parse_position,
)

EPOCH, POSITION, BLOB, STATE = (
    "Haptera-Epoch",
    "Haptera-Position",
    "Haptera-Blob",
    "Haptera-State",
)
SOURCE: Final = "Nats-Stream-Source"
MESSAGE_ID: Final = "Nats-Msg-Id"
# So many messages are asked for at once; a program that does not read them is not sent more.
BATCH_MAX: Final = 64
# A request for messages ends after so long, and is made anew.
PULL_NS: Final = 5_000_000_000
# How often it is looked whether the connection is there still while nothing comes.
LOOK_EVERY_S: Final = 0.5
LOOKS_MAX: Final = 20
# A reader that asks no more is forgotten by the server.
READER_GONE_NS: Final = 60_000_000_000
# A connection is left to itself where it does not end within this time.
CLOSED_WITHIN_S: Final = 1.0
# Who can supply its state says so within this time.
SUPPLIERS_WITHIN_S: Final = 0.5
HEADER_MARGIN_BYTES: Final = 4_096
# Of the server: the stream is there with another configuration; there is no such message;
# what it ends with is another sequence, or another message.
_OTHER_CONFIGURATION, _NO_MESSAGE, _CHANGED = 10058, 10037, (10070, 10071)


@asynccontextmanager
async def nats_carrier(
    servers: Sequence[str], tls: ssl.SSLContext | None
) -> AsyncIterator["NatsCarrier"]:
    """A connection to one of the servers; what breaks it ends it.

    Raises:
        CarrierError: there is none.
    """
    met: list[Exception] = []

    async def note(error: Exception) -> None:
        """Each call raises what went wrong with it; `connect` says only that there is no server."""
        met[:] = [error]

    scheme = "nats" if tls is None else "tls"
    client = Client()
    try:
        try:
            await client.connect(
                [f"{scheme}://{one}" for one in servers],
                tls=tls,
                allow_reconnect=False,
                # Else it tries servers that refuse it for two minutes.
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=2,
                ping_interval=5,
                max_outstanding_pings=2,
                error_cb=note,
            )
        except (OSError, nats.errors.Error, TimeoutError) as error:
            why = _why(met[0] if met else error)
            raise CarrierError(f"no carrier at {', '.join(servers)}: {why}") from error
        carrier = NatsCarrier(client)
        await carrier.begin()
        yield carrier
    finally:
        with suppress(OSError, nats.errors.Error, TimeoutError):
            # Where a certificate was refused, the client awaits an end that does not come.
            async with asyncio.timeout(CLOSED_WITHIN_S):
                await client.close()


class NatsCarrier:
    """One connection.

    Answers are awaited here, not by the client: its `wait_for` may swallow a cancellation (CPython
    issue 37658), and a session that is cancelled would go on.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._inbox = client.new_inbox()
        self._awaited: dict[str, asyncio.Future[Msg]] = {}

    async def begin(self) -> None:
        """Have answers come."""
        await self._client.subscribe(f"{self._inbox}.*", cb=self._answered)

    async def _answered(self, one: Msg) -> None:
        if (awaited := self._awaited.pop(one.subject, None)) is not None and not awaited.done():
            awaited.set_result(one)

    async def prepare(self, group: str, hears: tuple[str, ...]) -> None:
        for one in (*hears, group):
            name = token(one)
            await self._have(f"out-{name}", [f"out.{name}", f"out.{name}.*"])
        name = token(group)
        sources = [{"name": f"out-{token(one)}"} for one in hears]
        await self._have(f"in-{name}", [f"in.{name}"], sources=sources)
        await self._have(f"state-{name}", [f"state.{name}.*"])

    async def end(self, voice: Voice) -> StreamEnd:
        found = await self._last(f"out-{token(voice.group)}", voice.subject)
        if found is None:
            return EMPTY
        try:
            headers = found.headers()
            return StreamEnd(found.seq, int(headers[EPOCH]), parse_position(headers[POSITION]))
        except (ValueError, LookupError) as error:
            raise CarrierError(f"{voice.subject} ends with what is no output: {error}") from error

    async def publish(self, voice: Voice, one: PublishOutput) -> int:
        headers = {
            EPOCH: str(one.epoch),
            POSITION: str(one.output.position),
            MESSAGE_ID: _id(voice, one.epoch, one.output.position),
        }
        match one.after:
            case int(sequence):
                headers["Nats-Expected-Last-Subject-Sequence"] = str(sequence)
            case position:
                headers["Nats-Expected-Last-Msg-Id"] = _id(voice, one.epoch, position)
        return (await self._asked(voice.subject, one.output.data, StoredOne, headers)).seq

    async def bounds(self, group: str) -> StreamBounds:
        state = (await self._api(f"STREAM.INFO.in-{token(group)}", StreamInfo)).state
        return StreamBounds(max(1, state.first_seq), state.last_seq)

    async def heard(self, group: str, after: int) -> AsyncIterator[StoredMessage]:
        async for sequence, one in self._read(f"in-{token(group)}", after):
            # What is no message of ours is a hole for who hears it.
            with suppress(ValueError, LookupError):
                yield _stored(sequence, one)

    async def said(self, group: str, after: int) -> AsyncIterator[NumberedOutput]:
        async for _, one in self._read(f"out-{token(group)}", after):
            with suppress(ValueError, LookupError):  # what is no output of ours
                yield NumberedOutput(parse_position((one.headers or {})[POSITION]), one.data)

    async def supply(self, group: str, blob: str, piece: bytes) -> int:
        subject = f"state.{token(group)}.piece"
        return (await self._asked(subject, piece, StoredOne, {BLOB: blob})).seq

    async def supplied(self, group: str, state: SuppliedState) -> None:
        said = msgspec.json.encode(state)
        await self._asked(f"state.{token(group)}.whole", said, ServerAnswer, {BLOB: state.blob})

    async def state(self, group: str) -> SuppliedState | None:
        found = await self._last(f"state-{token(group)}", f"state.{token(group)}.whole")
        if found is None:
            return None
        try:
            return msgspec.json.decode(base64.b64decode(found.data), type=SuppliedState)
        except (ValueError, RecursionError) as error:
            raise CarrierError(f"state.{token(group)} is none: {error}") from error

    async def pieces(self, group: str, state: SuppliedState) -> AsyncIterator[bytes]:
        if state.last < state.first:
            return
        async for sequence, one in self._read(f"state-{token(group)}", state.first - 1):
            if (one.headers or {}).get(BLOB) == state.blob and sequence <= state.last:
                yield one.data
            if sequence >= state.last:
                return

    async def suppliers(self, group: str) -> dict[int, bool]:
        inbox = self._client.new_inbox()
        found: dict[int, bool] = {}
        came: asyncio.Queue[Msg] = asyncio.Queue()
        answers = await self._client.subscribe(inbox, cb=came.put)
        try:
            await self._client.publish(f"suppliers.{token(group)}", reply=inbox)
            async with asyncio.timeout(SUPPLIERS_WITHIN_S):
                while not any(found.values()):
                    one = await came.get()
                    if (one.headers or {}).get("Status"):
                        break  # nobody can
                    with suppress(msgspec.DecodeError):
                        found |= msgspec.json.decode(one.data, type=dict[int, bool])
        except TimeoutError:
            pass
        except nats.errors.Error as error:
            raise CarrierError(str(error)) from error
        finally:
            with suppress(nats.errors.Error, OSError):
                await answers.unsubscribe()
        return found

    async def ask(self, group: str, rank: int) -> None:
        await self._client.publish(f"supply.{token(group)}.{rank}")

    async def offer(
        self, group: str, rank: int, leads: Callable[[], bool], asked: Callable[[], None]
    ) -> None:
        async def tell(one: Msg) -> None:
            await one.respond(json.dumps({rank: leads()}).encode())

        async def supply(_: Msg) -> None:
            asked()

        # First what is asked second: who is found is asked at once.
        await self._client.subscribe(f"supply.{token(group)}.{rank}", cb=supply)
        await self._client.subscribe(f"suppliers.{token(group)}", cb=tell)

    async def _have(self, name: str, subjects: list[str], **others: object) -> None:
        configuration = {
            "name": name,
            "subjects": subjects,
            "retention": "limits",
            "storage": "file",
            "discard": "old",
            "num_replicas": 1,
            "max_bytes": STREAM_BYTES_MAX,
            "max_msgs": STREAM_MESSAGES_MAX,
            "max_msg_size": MESSAGE_BYTES_MAX + HEADER_MARGIN_BYTES,
            **others,
        }
        try:
            await self._api(f"STREAM.CREATE.{name}", ServerAnswer, configuration)
        except CarrierError as error:
            if not str(error).startswith(f"{_OTHER_CONFIGURATION} "):
                raise
            await self._api(f"STREAM.UPDATE.{name}", ServerAnswer, configuration)

    async def _last(self, stream: str, subject: str) -> StreamMessage | None:
        try:
            asked = {"last_by_subj": subject}
            return (await self._api(f"STREAM.MSG.GET.{stream}", FoundMessage, asked)).message
        except CarrierError as error:
            if str(error).startswith(f"{_NO_MESSAGE} "):
                return None
            raise

    async def _read(self, stream: str, after: int) -> AsyncIterator[tuple[int, Msg]]:
        """Messages with their numbers, asked for in batches: who does not read is sent no more."""
        configuration = {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": after + 1,
            "ack_policy": "none",
            "replay_policy": "instant",
            "inactive_threshold": READER_GONE_NS,
            "mem_storage": True,
            "num_replicas": 1,
        }
        asked = {"stream_name": stream, "config": configuration}
        reader = (await self._api(f"CONSUMER.CREATE.{stream}", MadeReader, asked)).name
        inbox = self._client.new_inbox()
        came: asyncio.Queue[Msg] = asyncio.Queue()
        answers = await self._client.subscribe(inbox, cb=came.put)
        pull = json.dumps({"batch": BATCH_MAX, "expires": PULL_NS}).encode()
        try:
            while True:
                await self._client.publish(
                    f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{reader}", pull, reply=inbox
                )
                for _ in range(BATCH_MAX):
                    one = await self._next(came)
                    if status := (one.headers or {}).get("Status"):
                        _check_status(status, one)
                        break
                    # $JS.ACK.STREAM.READER.DELIVERED.SEQUENCE…
                    yield int(one.reply.split(".")[5]), one
        except nats.errors.Error as error:
            raise CarrierError(f"{stream}: {error}") from error
        finally:
            with suppress(nats.errors.Error, OSError):
                await answers.unsubscribe()

    async def _next(self, came: asyncio.Queue[Msg]) -> Msg:
        """The next message of a reader; its request is answered within its time, if by an end."""
        for _ in range(LOOKS_MAX):
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    return await came.get()
            if not self._client.is_connected:
                break
        raise CarrierError("the connection is lost")

    async def _api(self, what: str, shape: type[Answer], asked: object = None) -> Answer:
        data = b"" if asked is None else json.dumps(asked).encode()
        return await self._asked(f"$JS.API.{what}", data, shape)

    async def _asked(
        self,
        subject: str,
        data: bytes,
        shape: type[Answer],
        headers: dict[str, str] | None = None,
    ) -> Answer:
        reply = f"{self._inbox}.{secrets.token_hex(8)}"
        answer = self._awaited[reply] = asyncio.get_running_loop().create_future()
        try:
            await self._client.publish(subject, data, reply=reply, headers=headers)
            async with asyncio.timeout(ANSWER_WITHIN_S):
                said = (await answer).data
            if not isinstance(read := read_answer(said, shape), ServerFault):
                return read
        except (nats.errors.Error, OSError, ValueError, RecursionError) as error:
            raise CarrierError(f"{subject}: {error}") from error
        finally:
            self._awaited.pop(reply, None)
        if read.err_code in _CHANGED:
            raise ChangedEndError(read.description)
        raise CarrierError(f"{read.err_code} {read.description}: {subject}")


def _why(error: Exception) -> str:
    """The reason for which there is no connection, in words for people."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"who answers is not the node of that address: {error.verify_message}"
    if "authorization violation" in str(error).lower():
        return "it serves nodes only, and this node's certificate does not say that it is one"
    return str(error)


def _check_status(status: str, one: Msg) -> None:
    """A request for messages that ended without all of them is in order; anything else is not."""
    if status not in ("404", "408") and not (status == "409" and "Batch" in str(one.headers)):
        raise CarrierError(f"the reader ended: {status} {(one.headers or {}).get('Description')}")


def _id(voice: Voice, epoch: int, position: OutputPosition) -> str:
    """The identity of an output: another epoch's is another, so that no chain passes it."""
    return f"{voice.subject}/{epoch}/{position}"


def _stored(sequence: int, one: Msg) -> StoredMessage:
    headers = one.headers or {}
    if SOURCE not in headers:
        return StoredMessage(sequence, one.data)
    # STREAM SEQUENCE, and more in later servers.
    stream, at = headers[SOURCE].split(" ")[:2]
    # out.GROUP, or out.GROUP.RANK
    rank = headers[MESSAGE_ID].partition("/")[0].split(".")[2:]
    return StoredMessage(
        sequence,
        one.data,
        group_of(stream.removeprefix("out-")),
        int(at),
        int(rank[0]) if rank else None,
        int(headers[EPOCH]),
        parse_position(headers[POSITION]),
    )
