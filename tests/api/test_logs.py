"""Logs over REST: what follows a place, each complete line once, also of a log that began anew."""

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.api.requests.logs import log_view
from haptera.daemon.logs import part_of
from haptera.model.changes import Declare
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code
from haptera.runtime.network.peer_messages import LOG_BYTES_MAX, LogAsked, LogPlace
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend

WEB = EntityId("service", "web", "n1")
PATH = f"/v1/entities/{WEB}/log"
PIECES = st.lists(st.text("a\n\u00fc", max_size=6).map(str.encode), max_size=12)


def cluster():
    backend = FakeBackend()
    backend.write(Declare(node_id("n1"), {}, "site"), Declare(WEB, {}, "site"))
    backend.logs[WEB] = b"zero\none\n"
    return backend, app_of(backend)


def asked(app, after=""):
    return ask(app, "GET", PATH + after, token="read-token")


def test_what_is_added_is_told_after_the_place_of_the_last_answer():
    backend, app = cluster()
    first = asked(app).json
    assert first == {"entity": str(WEB), "lines": ["zero", "one"], "after": "1.9", "anew": False}
    assert asked(app, "?after=1.9").json == {**first, "lines": []}

    backend.logs[WEB] += b"two\nthr"
    more = asked(app, "?after=1.9").json
    assert more == {**first, "lines": ["two"], "after": "1.13"}
    backend.logs[WEB] += b"ee\n"
    assert asked(app, "?after=1.13").json["lines"] == ["three"]


@pytest.mark.parametrize("after", ["1.10", "2.0"], ids=["shorter now", "another file"])
def test_a_log_that_began_anew_is_told_from_its_beginning(after):
    _, app = cluster()
    told = asked(app, f"?after={after}").json
    assert (told["lines"], told["after"], told["anew"]) == (["zero", "one"], "1.9", True)


def test_what_is_no_place_is_refused():
    _, app = cluster()
    answer = asked(app, "?after=soon")
    assert (answer.status, answer.json["code"]) == (400, Code.SYNTAX)


@given(PIECES)
def test_each_complete_line_is_told_once_however_it_is_written(pieces):
    written, after, told = b"", LogPlace(1, 0), []
    for piece in [*pieces, b"\n"]:
        written += piece
        while True:
            part = part_of(BytesIO(written), 1, LogAsked(WEB, LOG_BYTES_MAX, after))
            view = log_view(WEB, part, after)
            told += view.lines
            if view.after == f"1.{after.offset}":
                break
            after = LogPlace(1, int(view.after.partition(".")[2]))
    assert "\n".join(told) == written.decode().removesuffix("\n")


def test_a_line_longer_than_an_answer_is_told_in_pieces():
    written = b"x" * (LOG_BYTES_MAX + 1) + b"\n"
    begin = LogPlace(1, 0)
    part = part_of(BytesIO(written), 1, LogAsked(WEB, after=begin))
    view = log_view(WEB, part, begin)
    assert (view.lines, view.after) == (["x" * LOG_BYTES_MAX], f"1.{LOG_BYTES_MAX}")
