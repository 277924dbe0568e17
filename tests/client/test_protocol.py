"""How a call is made, operation by operation, without a socket."""

import json

import pytest

from haptera.client import Access, Arrived, Broken, RefusedError, UnreachableError, calls
from haptera.client.protocol import (
    ANSWER_WITHIN_S,
    BACK_OFF_S,
    CONNECT_WITHIN_S,
    SILENCE_S,
    TELL_WAITING_AFTER_S,
    CallDone,
    Open,
    Pause,
    Receive,
    Send,
    Waiting,
    asking,
    following,
)
from haptera.model.errors import Code, HapteraError

ACCESS = Access("http://127.0.0.1:4270", "hp1.a.b")
HEALTH = b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1:4270\r\nAuthorization: Bearer hp1.a.b\r\n\r\n"
FIRST, NEXT = Receive(TELL_WAITING_AFTER_S), Receive(ANSWER_WITHIN_S)
EVENT = b'data: {"cluster": "c", "entities": [], "gone": []}\n\n'


def answer(body, status=200, *lines):
    head = [f"HTTP/1.1 {status} -", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


WELL = answer(b'{"status": "ok", "version": "1"}', 200, 'ETag: "7.1"')


def run(operations, *outcomes):
    """What is done, each outcome sent or thrown in after it; all that was yielded."""
    done = [next(operations)]
    for one in outcomes:
        throws = isinstance(one, Exception)
        done.append(operations.throw(one) if throws else operations.send(one))
    return done


def test_a_call_connects_sends_and_receives():
    *done, last = run(asking(calls.health(), ACCESS, kept=False), b"", b"", WELL[:70], WELL[70:])
    assert done == [Open(), Send(HEALTH), FIRST, NEXT]
    assert isinstance(last, CallDone)
    assert (last.given.value.status, last.given.tag, last.keeps) == ("ok", '"7.1"', True)


def test_a_kept_connection_that_was_closed_meanwhile_is_made_anew():
    *done, last = run(asking(calls.health(), ACCESS, kept=True), b"", b"", b"", b"", WELL)
    assert done == [Send(HEALTH), FIRST, Open(), Send(HEALTH), FIRST]
    assert isinstance(last, CallDone)


def test_a_fresh_connection_that_ends_too_early_is_no_answer():
    with pytest.raises(UnreachableError, match="ended too early"):
        run(asking(calls.health(), ACCESS, kept=False), b"", b"", b"")


def test_whoever_waits_long_is_told_and_waits_on():
    outcomes = (b"", b"", TimeoutError(), b"", WELL)
    *done, last = run(asking(calls.health(), ACCESS, kept=False), *outcomes)
    rest = Receive(ANSWER_WITHIN_S - TELL_WAITING_AFTER_S)
    assert done == [Open(), Send(HEALTH), FIRST, Waiting(), rest]
    assert isinstance(last, CallDone)


def test_who_waits_for_too_long_gives_up_with_the_address():
    outcomes = (b"", b"", TimeoutError(), b"", TimeoutError())
    with pytest.raises(UnreachableError, match="no answer in time") as error:
        run(asking(calls.health(), ACCESS, kept=False), *outcomes)
    assert error.value.where == ACCESS.url


def test_a_connection_that_is_not_kept_is_said_not_to_be():
    closing = answer(b'{"status": "ok", "version": "1"}', 200, "Connection: close")
    *_, last = run(asking(calls.health(), ACCESS, kept=False), b"", b"", closing)
    assert not last.keeps


def test_what_is_no_problem_document_is_told_by_its_status():
    with pytest.raises(RefusedError, match="answered 502 without an explanation") as refused:
        run(asking(calls.health(), ACCESS, kept=False), b"", b"", answer(b"<html>", 502))
    assert refused.value.code == Code.VERSION_MISMATCH


def test_a_token_that_cannot_be_sent_is_told():
    with pytest.raises(HapteraError, match="line break"):
        run(asking(calls.health(), Access(ACCESS.url, "a\nb"), kept=False))


def test_a_stream_backs_off_further_each_time_and_no_further_than_the_last():
    operations = following(calls.events(), ACCESS)
    next(operations)
    pauses = []
    for _ in range(len(BACK_OFF_S) + 1):
        assert isinstance(operations.throw(ConnectionRefusedError()), Broken)
        pauses.append(next(operations))
        assert operations.send(b"") == Open()
    assert pauses == [Pause(one) for one in (*BACK_OFF_S, BACK_OFF_S[-1])]


def test_a_stream_names_its_place_after_a_break_and_forgets_one_that_is_gone():
    operations = following(calls.events(), ACCESS)
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    done = run(operations, b"", b"", head + b"id: 7-a.12\n" + EVENT)
    assert done[2] == Receive(CONNECT_WITHIN_S)
    assert isinstance(done[3], Arrived)
    assert next(operations) == Receive(SILENCE_S)
    assert isinstance(operations.send(b""), Broken)
    assert [next(operations), operations.send(b"")] == [Pause(BACK_OFF_S[0]), Open()]
    assert b"\r\nLast-Event-ID: 7-a.12\r\n" in operations.send(b"").data
    operations.send(b"")
    assert operations.send(answer(b"{}", 410)) == Open()
    assert b"Last-Event-ID" not in operations.send(b"").data


def test_a_stream_that_never_knew_a_place_is_refused_where_it_is_gone():
    problem = {"title": "", "status": 410, "code": "", "detail": "", "what": "gone"}
    with pytest.raises(RefusedError, match="gone"):
        run(following(calls.events(), ACCESS), b"", b"", answer(json.dumps(problem).encode(), 410))


@pytest.mark.parametrize("status", [200, 503])
@pytest.mark.parametrize(
    "body", [b'{"status":"ok","more":' + b"[" * 100_000, b'{"status": "\xff"}']
)
def test_an_answer_that_nobody_can_decode_is_told_in_words(body, status):
    told = answer(body, status)
    with pytest.raises(HapteraError):
        run(asking(calls.health(), ACCESS, kept=False), b"", b"", told[:70], told[70:])
