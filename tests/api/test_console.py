"""A node's console over the API of a real backend: for who may read that node, and nobody else."""

from http import HTTPStatus

from haptera.api.requests.standing_lines import LINES_MAX, STANDS_S, StandingLines
from haptera.model.changes import Declare
from haptera.model.entity import node_id
from haptera.modules.console import ConsoleRecord, record_of
from haptera.runtime.identity.tokens import Bearer, Scope
from tests.api.asking import app_of, asked
from tests.api.real_backend import real_backend

HERE = {"host": "127.0.0.1:4270"}


async def test_a_nodes_console_is_told_to_who_may_read_the_node(tmp_path):
    def declared(name):
        return Declare(node_id(name), {}, "user:bob")

    async with real_backend(tmp_path, declared("n1"), declared("n2")) as backend:
        ConsoleRecord(record_of(tmp_path, "n1")).add(b"it boots\r\n")
        app = app_of(backend)
        tokens = {
            within: (await backend.tokens.mint(Bearer(f"of {within}", Scope.READ, within), 60)).text
            for within in (None, "n1", "n2")
        }

        async def fetch(node, within):
            path, token = f"/v1/entities/node:{node}/log", tokens[within]
            return await asked(app, "GET", path, token, b"", HERE)

        for within in (None, "n1"):
            assert (await fetch("n1", within)).json["lines"] == ["it boots"]
        assert (await fetch("n1", "n2")).status == HTTPStatus.FORBIDDEN
        unrecorded = await fetch("n2", None)
        assert unrecorded.status == HTTPStatus.NOT_FOUND
        assert "node:n2 has no record of its console yet" in unrecorded.body.decode()

        # Who was told is in the audit; asking on, as --follow does, adds nothing.
        assert (await fetch("n1", None)).status == HTTPStatus.OK
        await backend.tokens.mint(Bearer("written after those", Scope.READ), 60)
        readers = ["user:of n1", "user:of None"]
        assert [
            (one.who, one.what) for one in backend.records.deeds(None, 9) if "console" in one.what
        ] == [(who, "console node:n1") for who in readers]


def test_a_line_in_the_audit_stands_for_a_day_of_reading():
    noted, now = [], [1_000.0]
    lines = StandingLines(lambda: now[0])

    def read(who, about):
        if not lines.has(who, about):
            lines.add(who, about)
            noted.append((now[0], who, about))

    n1, n2 = node_id("n1"), node_id("n2")
    for at_s in (1_000.0, 1_001.0, 1_000.0 + STANDS_S - 1, 1_000.0 + STANDS_S, 5.0):
        now[0] = at_s
        read("user:eve", n1)
    read("user:bob", n1)
    read("user:bob", n2)
    # A clock that was set back is no reason to be silent.
    assert noted == [
        (1_000.0, "user:eve", n1),
        (1_000.0 + STANDS_S, "user:eve", n1),
        (5.0, "user:eve", n1),
        (5.0, "user:bob", n1),
        (5.0, "user:bob", n2),
    ]


def test_no_more_lines_are_remembered_than_there_is_room_for():
    lines = StandingLines(lambda: 0.0)
    for number in range(LINES_MAX + 1):
        lines.add(f"user:{number}", None)
    known = [number for number in (0, 1, LINES_MAX) if lines.has(f"user:{number}", None)]
    assert known == [1, LINES_MAX]
