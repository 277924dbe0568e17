"""What people ask of a node, or of all, is accepted once it is written down, or refused."""

import asyncio

import pytest

from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from haptera.model.errors import HapteraError
from haptera.model.events import Asked, Released
from haptera.runtime.store.feed import Durability, Follower
from tests.api.real_backend import AUTHOR, real_backend

N1 = node_id("n1")
# No text that could be stored.
WRONG = "\ud800"


@pytest.mark.parametrize("request_", [Asked(N1), Released("n1"), Released()])
def test_a_request_that_cannot_be_written_down_is_refused(tmp_path, request_):
    async def story():
        async with real_backend(tmp_path, Declare(N1, {}, "site")) as backend:
            await backend.orders.request(request_, "user:eve", "this")
            with pytest.raises(HapteraError, match="surrogates not allowed"):
                await backend.orders.request(request_, "user:eve", WRONG)
            return [one.what for one in backend.records.deeds(None, 9)]

    assert asyncio.run(story()) == ["this", "1 change"]


def test_a_request_is_accepted_once_the_standby_has_it(tmp_path):
    async def story():
        async with real_backend(tmp_path, Declare(N1, {}, "site")) as backend:
            place = 0, 0
            for _ in range(2):
                view = await backend.tree.replica(Follower.STANDBY, *place, "")
                place = view.log, view.at
            asking = asyncio.create_task(backend.orders.request(Released(), "user:eve", "this"))
            # What was written before this is durable here, and whoever waited for that has gone on.
            await backend.desires.propose((SetDesired(N1, "power", "on", "site"),), None, AUTHOR)
            # Unless this process was held up for so long that it waits for no standby.
            assert asking.done() == (backend.tree.durability() == Durability.LOCAL)
            while not asking.done():
                view = await backend.tree.replica(Follower.STANDBY, view.log, view.at, "")
            return asking.exception()

    assert asyncio.run(story()) is None
