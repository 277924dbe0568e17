"""Writers that change the same entities at once, by If-Match and by keys: no change is lost."""

import asyncio
import json
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.runtime.identity.tokens import Bearer, Scope
from tests.api.asking import app_of, asked
from tests.api.real_backend import real_backend

N1 = node_id("n1")
COUNTERS = [EntityId("service", name, "n1") for name in ("a", "b", "c")]
BEGIN = 1_000
# So often a writer that lost a race looks again: others can win no more often than they write.
TRIES_MAX = 100
BOB = Bearer("bob", Scope.WRITE)

counters = st.sampled_from(range(len(COUNTERS)))
adding = st.tuples(
    st.sampled_from(["patch", "patch", "bulk", "whole"]),
    st.lists(counters, min_size=1, max_size=3, unique=True),
    st.integers(1, 9),  # what is added
    st.booleans(),  # whether it is sent twice, with a key
    st.lists(st.integers(0, 6), min_size=4, max_size=4),  # how long it dawdles, and where
)
writers = st.lists(st.lists(adding, max_size=4), min_size=2, max_size=4)


class Writer:
    """Adds to counters as a careful client does: it reads, then writes if nothing changed."""

    def __init__(self, app, token, added, name):
        self.app, self.token, self.added, self.name = app, token, added, name
        self.keys = 0
        self.lost = 0

    async def run(self, deeds):
        for how, which, amount, twice, dawdles in deeds:
            await self.add(how, [COUNTERS[one] for one in which], amount, twice, list(dawdles))

    async def add(self, how, left, amount, twice, dawdles):
        for _ in range(TRIES_MAX):
            read = {one: await self.read(one) for one in left}
            await dawdle(dawdles)
            done = await self.send(how, read, amount, twice)
            self.added.update(dict.fromkeys(done, amount))
            left = [one for one in left if one not in done]
            if not left:
                return
            self.lost += 1
            await dawdle(dawdles)
        raise AssertionError("others cannot have won so often")

    async def read(self, entity):
        answer = await self.ask("GET", f"/v1/entities/{entity}")
        return answer.json["desired"]["port"]["value"], answer.headers["etag"]

    async def send(self, how, read, amount, twice):
        """Write the sums; which of them were taken."""
        if how == "patch":
            entity, (value, tag) = next(iter(read.items()))
            sent = ("PATCH", f"/v1/entities/{entity}/desired", {"port": value + amount})
            answer = await self.sent(*sent, twice, **{"if-match": tag})
            assert answer.status in (200, 412), answer.json
            return [entity] if answer.status == 200 else []
        patches = [
            {"entity": str(one), "desired": {"port": value + amount}, "if_match": tag}
            for one, (value, tag) in read.items()
        ]
        body = {"patches": patches, "all_or_nothing": how == "whole"}
        answer = await self.sent("POST", "/v1/bulk", body, twice)
        if how == "whole":
            assert answer.status in (200, 412), answer.json
            return list(read) if answer.status == 200 else []
        results = answer.json["results"]
        assert {one["status"] for one in results} <= {200, 412}, results
        return [one for one, told in zip(read, results, strict=True) if told["status"] == 200]

    async def sent(self, method, path, body, twice, **headers):
        """The answer; what is sent twice has a key, and is answered alike or told to wait."""
        if not twice:
            return await self.ask(method, path, body, **headers)
        self.keys += 1
        headers["idempotency-key"] = f"{self.name}-{self.keys}"
        both = [self.ask(method, path, body, **headers) for _ in range(2)]
        first, again = await asyncio.gather(*both)
        busy = "the request with this key is under way"
        if again.status == 409:
            assert again.json["what"] == busy
            return first
        if first.status == 409 and first.json["what"] == busy:
            return again
        # One came wholly after the other: what was refused may have been tried anew.
        assert first.body == again.body or 412 in (first.status, again.status)
        return first if first.status != 412 else again

    async def ask(self, method, path, body=None, **headers):
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"host": "127.0.0.1:4270", **headers}
        return await asked(self.app, method, path, self.token, data, headers)


async def dawdle(times):
    for _ in range(times.pop() if times else 0):
        await asyncio.sleep(0)


async def held(folder, several):
    """What the counters hold at the end, what was added to them, and how many races were lost."""
    declared = (Declare(N1, {}, "site"), *(Declare(one, {}, "site") for one in COUNTERS))
    begun = [SetDesired(one, "port", BEGIN, "user:bob") for one in COUNTERS]
    async with real_backend(folder, *declared, *begun) as backend:
        token = (await backend.tokens.mint(BOB, 600)).text
        app = app_of(backend)
        added = Counter()
        ones = [Writer(app, token, added, name) for name in range(len(several))]
        async with asyncio.TaskGroup() as tasks:
            for one, deeds in zip(ones, several, strict=True):
                tasks.create_task(one.run(deeds))
        held = {one: backend.desires.declared(one).desired["port"].value for one in COUNTERS}
        changed = backend.records.past(lambda _: True, before=None, count_max=10_000).changes
        return held, added, sum(one.lost for one in ones), changed[::-1]


@pytest.mark.slow
@settings(deadline=None)
@given(writers)
def test_whatever_was_acknowledged_is_there_once_and_nothing_else(several):
    with tempfile.TemporaryDirectory() as folder:
        found, added, lost, changed = asyncio.run(held(Path(folder), several))
    event(f"races lost: {min(lost, 3)}")
    assert found == {one: BEGIN + added[one] for one in COUNTERS}
    values = {str(one): None for one in COUNTERS}
    for one in changed:  # Each change was made of the one before it.
        if one.name == "port":
            assert one.before == values[one.entity]
            values[one.entity] = one.after
    assert values == {str(one): value for one, value in found.items()}


def test_writers_do_get_in_each_others_way(tmp_path):
    """Else the property above would say nothing."""
    deeds = [("patch", [0], 1, False, [0, 0, 0, 3])] * 4
    found, added, lost, _ = asyncio.run(held(tmp_path, [deeds] * 4))
    assert (found[COUNTERS[0]], added) == (BEGIN + 16, {COUNTERS[0]: 16})
    assert lost > 4


def test_who_names_no_version_is_written_however_many_others_write():
    async def run():
        with tempfile.TemporaryDirectory() as folder:
            async with real_backend(Path(folder), Declare(N1, {}, "user:bob")) as backend:
                app = app_of(backend)
                minted = await backend.tokens.mint(BOB, 60.0)
                answers = await asyncio.gather(
                    *(
                        asked(
                            app,
                            "PATCH",
                            "/v1/entities/node:n1/attributes",
                            minted.text,
                            json.dumps({"rack": str(number)}).encode(),
                            {"host": "127.0.0.1"},
                        )
                        for number in range(24)
                    )
                )
                return Counter(one.status for one in answers)

    assert asyncio.run(run()) == {200: 24}
