"""A node's console over the API of a real backend: for who may read that node, and nobody else."""

import asyncio
from http import HTTPStatus

from haptera.api.app import make_app
from haptera.model.changes import Declare
from haptera.model.entity import node_id
from haptera.modules.console import ConsoleRecord, record_of
from haptera.runtime.identity.tokens import Bearer, Scope
from haptera.site import Sites
from tests.api.asking import asked
from tests.api.real_backend import real_backend

HERE = {"host": "127.0.0.1:4270"}


def test_a_nodes_console_is_told_to_who_may_read_the_node(tmp_path):
    def declared(name):
        return Declare(node_id(name), {}, "user:bob")

    async def story():
        async with real_backend(tmp_path, declared("n1"), declared("n2")) as backend:
            ConsoleRecord(record_of(tmp_path, "n1")).add(b"it boots\r\n")
            app = make_app(backend, Sites("quick"), cluster="quick")
            tokens = {
                within: (
                    await backend.mint_token(Bearer(f"of {within}", Scope.READ, within), 60)
                ).text
                for within in (None, "n1", "n2")
            }

            async def told(node, within):
                path, token = f"/v1/entities/node:{node}/log", tokens[within]
                return await asked(app, "GET", path, token, b"", HERE)

            for within in (None, "n1"):
                assert (await told("n1", within)).json["lines"] == ["it boots"]
            assert (await told("n1", "n2")).status == HTTPStatus.FORBIDDEN
            unrecorded = await told("n2", None)
            assert unrecorded.status == HTTPStatus.NOT_FOUND
            assert "node:n2 has no record of its console yet" in unrecorded.body.decode()

    asyncio.run(story())
