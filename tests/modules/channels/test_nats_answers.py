"""Answers of a server of channels, and what is none: an error of the carrier, never another one."""

import asyncio
import base64

import msgspec
import pytest
from nats.aio.msg import Msg

from haptera.modules.replica.channels.carrier import CarrierError, Voice
from haptera.modules.replica.channels.nats_carrier import NatsCarrier
from haptera.modules.replica.channels.outbox import EMPTY, OutputPosition, StreamEnd

LEDGER = Voice("ledger")


class OneAnswer:
    """A connection to a server that answers each question alike."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    def new_inbox(self) -> str:
        return "inbox"

    async def subscribe(self, _subject, cb):
        self.hears = cb

    async def publish(self, _subject, _data=b"", reply="", headers=None):
        await self.hears(Msg(self, subject=reply, data=self.answer))


def asked(answer: object, question):
    async def run():
        said = answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
        carrier = NatsCarrier(OneAnswer(said))
        await carrier.begin()
        return await question(carrier)

    return asyncio.run(run())


def end(carrier):
    return carrier.end(LEDGER)


QUESTIONS = [
    end,
    lambda carrier: carrier.bounds("ledger"),
    lambda carrier: carrier.supply("ledger", "b", b"piece"),
    lambda carrier: carrier.state("ledger"),
    lambda carrier: anext(aiter(carrier.heard("ledger", 0))),
]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "answer",
    [
        b"", b"[", b"7", b"[" * 100_000, [], "none", {"error": "no"}, {"error": {"err_code": []}},
        {"seq": "7", "name": 7, "state": [], "message": None},
        {"seq": None, "state": {"first_seq": 1}, "message": {"seq": {}}},
    ],
)  # fmt: skip
def test_what_is_no_answer_is_an_error_of_the_carrier(answer, question):
    with pytest.raises(CarrierError):
        asked(answer, question)


@pytest.mark.parametrize("headers", ["", "!", base64.b64encode(b"NATS/1.0\r\n\r\n").decode()])
def test_a_stream_that_ends_with_no_output_says_so(headers):
    last = {"message": {"seq": 3, "hdrs": headers, "data": ""}}
    with pytest.raises(CarrierError, match=r"out\.ledger ends with what is no output"):
        asked(last, end)


def test_what_a_server_says_besides_is_not_read():
    headers = b"NATS/1.0\r\nHaptera-Epoch: 2\r\nHaptera-Position: 0.0.1.1\r\n\r\n"
    message = {"seq": 3, "hdrs": base64.b64encode(headers).decode(), "time": [], "subject": 7}
    assert asked({"type": {}, "message": message}, end) == StreamEnd(
        3, 2, OutputPosition(0, 0, 1, 1)
    )
    assert asked({"error": {"err_code": 10037, "code": "404"}}, end) == EMPTY
