"""Lists as lines: the same items as in one document, and never all of them in memory."""

import asyncio
import json

import msgspec
import pytest

from haptera.api.requests.lines import LINES, LINES_AT_ONCE, Lines, document
from haptera.model.answers.past import Happened, PastView, Sort
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend

MEDIA_TYPE = "application/x-ndjson"
NODES = [node_id(f"n{number}") for number in range(3)]


def cluster():
    backend = FakeBackend()
    for one in NODES:
        backend.write(Declare(one, {}, "site"), SetDesired(one, "power", "on", "site"))
    backend.happenings = [Happened(5.0, "node:n0", Sort.SEEN, "power", "on")]
    backend.pasts = {5: [PastView("node:n0", {}, {"power": "on"}, {}, None, None)]}
    backend.note("user:bob", "release the brake")
    return app_of(backend)


def lines_of(answer):
    assert (answer.status, answer.headers["content-type"]) == (200, MEDIA_TYPE)
    return [json.loads(line) for line in answer.body.decode().splitlines()]


@pytest.mark.parametrize(
    ("path", "member"),
    [
        ("/v1/entities?select=n[0-1]", "entities"),
        ("/v1/history?limit=4", "changes"),
        ("/v1/happenings", "happened"),
        ("/v1/past?at=5", "entities"),
        ("/v1/audit", "deeds"),
    ],
)
@pytest.mark.parametrize("accept", [MEDIA_TYPE, f"text/html, {MEDIA_TYPE.upper()};q=0.9"])
def test_a_list_as_lines_has_what_the_document_has(path, member, accept):
    app = cluster()
    document = ask(app, "GET", path, token="read-token").json[member]
    assert document
    lines = ask(app, "GET", path, token="read-token", headers={"accept": accept})
    assert lines_of(lines) == document


def test_who_takes_anything_is_sent_one_document():
    for accept in ("*/*", "application/*", "application/json", "application/x-ndjsonx", ""):
        answer = ask(
            cluster(), "GET", "/v1/entities", token="read-token", headers={"accept": accept}
        )
        assert answer.headers["content-type"] == "application/json"


def test_the_pages_of_the_history_are_linked():
    app, path, seen = cluster(), "/v1/history?limit=4", []
    while path is not None:
        answer = ask(app, "GET", path, token="read-token", headers={"accept": MEDIA_TYPE})
        seen += lines_of(answer)
        link = answer.headers.get("link")
        path = None if link is None else link[1:].partition(">")[0]
    assert seen == ask(app, "GET", "/v1/history", token="read-token").json["changes"]
    assert len(seen) == 6


class Count(msgspec.Struct):
    number: int


class Counts(msgspec.Struct):
    of: str
    counts: list[Count]


def lines_read(body):
    return [json.loads(line)["number"] for line in body.splitlines()]


def document_read(body):
    whole = msgspec.json.decode(body, type=Counts)
    assert whole.of == "all"
    return [one.number for one in whole.counts]


AS_DOCUMENT = document(Counts("all", []))
FORMS = pytest.mark.parametrize(
    ("form", "read"), [(LINES, lines_read), (AS_DOCUMENT, document_read)]
)


@FORMS
def test_nothing_is_made_before_the_reader_has_taken_what_came_before(form, read):
    made, chunks = 0, []

    def items():
        nonlocal made
        for made in range(1, 10_001):
            yield Count(made)

    async def send(message):
        if body := message.get("body"):
            chunks.append(body)
            assert made <= len(chunks) * LINES_AT_ONCE

    asyncio.run(Lines(items(), form=form)({}, None, send))
    assert read(b"".join(chunks)) == list(range(1, 10_001))


@FORMS
@pytest.mark.parametrize("count", [0, 1, LINES_AT_ONCE, LINES_AT_ONCE + 1])
def test_a_list_of_any_length_has_all_of_it(form, read, count):
    body = b""

    async def send(message):
        nonlocal body
        body += message.get("body", b"")

    asyncio.run(Lines(map(Count, range(count)), form=form)({}, None, send))
    assert read(body) == list(range(count))


@FORMS
async def test_the_loop_has_its_turn_between_the_chunks_of_a_long_list(form, read):
    turns, chunks = 0, 0

    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def send(message):
        nonlocal chunks
        chunks += message.get("more_body", False)

    beside = asyncio.create_task(other())
    await Lines(map(Count, range(10_000)), form=form)({}, None, send)
    beside.cancel()
    assert turns >= chunks == 10_000 // LINES_AT_ONCE


def test_who_takes_nothing_is_given_up_without_an_end():
    sent = []

    async def send(message):
        sent.append(message)
        if message.get("body"):
            await asyncio.Event().wait()

    asyncio.run(Lines(map(Count, range(10_000)), within_s=0.0)({}, None, send))
    assert [message.get("more_body") for message in sent] == [None, True]
