"""Delivery of images to a node, over real HTTPS: whole, resumed, refused, and never mistaken."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from threading import Thread

import pytest
from starlette.applications import Starlette
from starlette.types import Message, Scope

from haptera.api.requests.callers import CERTIFICATE
from haptera.api.requests.order import ServingLimits, ServingOrder
from haptera.api.routes import images
from haptera.images.fetch import ArtefactSource, BeingBuiltError
from haptera.images.manifest import DIGEST, ImageManifest, sign, verified
from haptera.images.parent import Parent
from haptera.modules.image.store import ImageStore, manifest_of
from haptera.modules.system.staging import manifest_once_built
from haptera.sdk import HapteraError, Refused
from tests.modules.image_rig import HOST, Rig, machine

pytestmark = pytest.mark.net

# Longer than what is read at once, and than what the server sends at once.
CONTENT = bytes(range(256)) * 12_000
SHORT = CONTENT[:200_000]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, ["a"])


def source(rig: Rig, parent: Parent) -> ArtefactSource:
    return ArtefactSource(parent, rig.run_dir / "images")


def fetch(rig: Rig, reference: str = "a", before: Callable[[], object] = lambda: None) -> Path:
    """Manifest, then artefact, as a node fetches them; `before` happens in between."""

    async def ask() -> Path:
        async with rig.served() as parent:
            one = source(rig, parent)
            _, manifest = await asyncio.to_thread(one.manifest, reference)
            before()
            return await asyncio.to_thread(one.artefact, manifest)

    return asyncio.run(ask())


def part_of(rig: Rig, manifest: ImageManifest) -> Path:
    folder = rig.run_dir / "images"
    folder.mkdir(exist_ok=True)
    return folder / f"{manifest.digest.removeprefix(DIGEST)}.part"


@pytest.mark.parametrize("by", ["name", "digest"])
def test_an_image_comes_whole(rig: Rig, by: str) -> None:
    kept = rig.keep("a", CONTENT)
    reference = "a" if by == "name" else kept.digest
    rig.wanted = [reference]

    assert fetch(rig, reference).read_bytes() == CONTENT
    assert not part_of(rig, kept).exists()


def test_what_broke_off_is_gone_on_with(rig: Rig) -> None:
    kept = rig.keep("a", CONTENT)
    part_of(rig, kept).write_bytes(CONTENT[:1_000_000])
    served = rig.store.artefact(kept.digest)

    def lose_the_beginning() -> None:
        """Only the rest is asked for: nobody notices that the beginning is gone."""
        served.write_bytes(bytes(1_000_000) + CONTENT[1_000_000:])

    assert fetch(rig, before=lose_the_beginning).read_bytes() == CONTENT


def test_what_lies_there_is_not_fetched_again(rig: Rig) -> None:
    kept = rig.keep("a", CONTENT)
    fetch(rig)

    def lose_it() -> None:
        rig.store.artefact(kept.digest).unlink()

    assert fetch(rig, before=lose_it).read_bytes() == CONTENT


def test_what_the_nodes_own_disk_changed_is_fetched_anew(rig: Rig) -> None:
    rig.keep("a", CONTENT)
    fetch(rig).write_bytes(b"rotten")

    assert fetch(rig).read_bytes() == CONTENT


@pytest.mark.parametrize("at", [0, len(CONTENT) // 2, len(CONTENT) - 1])
def test_one_flipped_bit_is_found_and_nothing_of_it_is_kept(rig: Rig, at: int) -> None:
    kept = rig.keep("a", CONTENT)
    flipped = bytearray(CONTENT)
    flipped[at] ^= 1
    rig.store.artefact(kept.digest).write_bytes(flipped)

    with pytest.raises(HapteraError) as caught:
        fetch(rig)
    assert kept.digest in caught.value.what
    assert caught.value.where is not None
    assert HOST in caught.value.where
    assert [*(rig.run_dir / "images").iterdir()] == []


def test_an_artefact_that_is_cut_short_is_kept_to_go_on_with_and_not_taken(rig: Rig) -> None:
    kept = rig.keep("a", CONTENT)
    rig.store.artefact(kept.digest).write_bytes(CONTENT[:-1])

    with pytest.raises(HapteraError, match=f"{kept.digest} broke off 5 times"):
        fetch(rig)
    assert part_of(rig, kept).read_bytes() == CONTENT[:-1]
    rig.store.artefact(kept.digest).write_bytes(CONTENT)
    assert fetch(rig).read_bytes() == CONTENT


def test_more_than_there_should_be_is_not_taken(rig: Rig) -> None:
    kept = rig.keep("a", CONTENT)
    part_of(rig, kept).write_bytes(CONTENT + b"more")

    with pytest.raises(HapteraError, match="not mounted"):
        fetch(rig)
    assert not part_of(rig, kept).exists()


@pytest.mark.parametrize("reference", ["a", f"sha256:{'0' * 64}", "sha256:typed", "../state.db"])
def test_an_image_that_is_not_there_is_named(rig: Rig, reference: str) -> None:
    rig.wanted = [reference]
    with pytest.raises(Refused, match=f"there is no image '{reference}' here yet|Not Found"):
        fetch(rig, reference)


@pytest.mark.slow
def test_an_image_that_is_being_built_is_waited_for_unless_it_is_unwanted(rig: Rig) -> None:
    rig.made = ["a"]
    target = rig.target("a", "", None)

    async def wait() -> str:
        told = asyncio.Queue[str]()
        asking = replace(target, tell=lambda text, _: told.put_nowait(text))
        async with rig.served() as parent, asyncio.timeout(60):
            waiting = asyncio.ensure_future(manifest_once_built(asking, source(rig, parent), "a"))
            said = await told.get()
            kept = rig.keep("a", SHORT)
            assert (await waiting).digest == kept.digest
            return said

    assert asyncio.run(wait()) == "image 'a' is being built"

    async def give_up() -> None:
        async with rig.served() as parent, asyncio.timeout(60):
            rig.target("b", "", None)
            await manifest_once_built(target, source(rig, parent), "b")

    rig.made = ["b"]
    target.stop()
    with pytest.raises(BeingBuiltError, match="image 'b' is being built"):
        asyncio.run(give_up())


def test_an_image_for_others_is_refused(rig: Rig) -> None:
    rig.keep("a", CONTENT)
    rig.keep("b", CONTENT)

    with pytest.raises(Refused, match="image 'b' is not for this node"):
        fetch(rig, "b")


async def test_an_artefact_for_others_is_refused_though_its_digest_is_known(rig: Rig) -> None:
    rig.keep("a", CONTENT)
    other = rig.keep("b", b"secret of others")

    with pytest.raises(HapteraError, match="the parent answers 403"):
        async with rig.served() as parent:
            return await asyncio.to_thread(source(rig, parent).artefact, other)


async def test_nothing_is_read_of_who_is_not_the_parent(rig: Rig) -> None:
    """Any node of the cluster could listen in its place: its certificate is good, but a node's."""
    rig.keep("a", CONTENT)

    with pytest.raises(HapteraError, match="not the parent"):
        async with rig.served(rig.identity) as parent:
            await asyncio.to_thread(source(rig, parent).manifest, "a")


def test_a_parent_that_is_away_is_named(rig: Rig) -> None:
    with pytest.raises(HapteraError, match=f"the manifest of a: {HOST}:9: .*refused"):
        source(rig, rig.parent(9)).manifest("a")


class Asker:
    """One of many nodes at the door, whose connection is simulated: it asks until it is served."""

    def __init__(self, number: int, digest: str) -> None:
        certificate = {"serialNumber": str(number)}
        self._scope = {"type": "http", "method": "GET", "path": f"/artefacts/{digest}"}
        self._scope |= {"headers": [], "state": {CERTIFICATE: certificate}}
        self.number = number
        self.content = b""

    async def ask(self, app: Starlette, served: list[int]) -> None:
        status = HTTPStatus.SERVICE_UNAVAILABLE
        while status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.content = b""
            async for message in answered(app, self._scope):
                status = message.get("status", status)
                self.content += message.get("body", b"")
        served.append(self.number)


async def answered(app: Starlette, scope: Scope) -> AsyncIterator[Message]:
    """What an application answers to a request, as it comes."""
    messages: asyncio.Queue[Message] = asyncio.Queue()
    asking = asyncio.ensure_future(app({**scope}, asyncio.Event().wait, messages.put))
    more = True
    while more:
        yield (message := await messages.get())
        more = message["type"] == "http.response.start" or message.get("more_body", False)
    await asking


@pytest.mark.slow
async def test_200_nodes_that_ask_at_once_are_all_served_in_the_order_of_asking(rig: Rig) -> None:
    """Four at once, and most have to ask again: none falls behind for that."""
    digest = rig.keep("a", SHORT).digest
    nodes = [Asker(number, digest) for number in range(200)]
    served: list[int] = []

    order = ServingOrder(lambda: ServingLimits(4), wait_s=0.5)
    app = images.Images(rig.store, lambda _: ["a"], order, rig.made.__contains__).app()
    async with asyncio.TaskGroup() as asking:
        for one in nodes:
            asking.create_task(one.ask(app, served))
    assert {one.content for one in nodes} == {SHORT}
    assert sorted(served) == [*range(200)]
    # Those that are sent at once may end in any order, and one that was just told to ask again is
    # passed by those next to it.
    assert all(abs(number - place) < 20 for place, number in enumerate(served))


def test_all_that_is_sent_counts_for_the_rate(rig: Rig) -> None:
    node = Asker(1, rig.keep("a", SHORT).digest)
    order = ServingOrder(lambda: ServingLimits(1, 2_000_000.0))

    async def ask() -> float:
        began_s = asyncio.get_running_loop().time()
        await node.ask(
            images.Images(rig.store, lambda _: ["a"], order, rig.made.__contains__).app(), []
        )
        return order.delay_s(0, began_s)

    assert asyncio.run(ask()) >= len(SHORT) / 2_000_000
    assert node.content == SHORT


def test_a_node_whose_turn_comes_later_asks_until_then(rig: Rig) -> None:
    manifest = rig.keep("a", CONTENT)

    async def ask() -> list[Path]:
        order = ServingOrder(lambda: ServingLimits(1), wait_s=0.1)
        async with rig.served(order=order) as parent:
            nodes = [
                ArtefactSource(rig.another(parent, number), rig.run_dir / f"images{number}")
                for number in range(4)
            ]
            return await asyncio.gather(
                *(asyncio.to_thread(one.artefact, manifest) for one in nodes)
            )

    assert {one.read_bytes() for one in asyncio.run(ask())} == {CONTENT}


def test_who_stops_reading_gives_its_turn_to_the_next(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "STALLED_S", 0.5)
    long = rig.keep("a", CONTENT * 4)

    async def ask() -> Path:
        async with rig.served(order=ServingOrder(lambda: ServingLimits(1))) as parent:
            one = ArtefactSource(rig.another(parent, 1), rig.run_dir / "images")
            stalled = await asyncio.to_thread(parent.get, f"/artefacts/{long.digest}", {})
            with stalled:
                return await asyncio.to_thread(one.artefact, long)

    assert asyncio.run(ask()).read_bytes() == CONTENT * 4


def test_an_older_image_in_place_of_a_newer_one_is_believed_neither_by_the_name_nor_by_the_digest(
    rig: Rig,
) -> None:
    older = rig.keep("a", SHORT)
    signed, artefact = rig.store.signed("a"), rig.store.artefact(older.digest)
    content = artefact.read_bytes()
    newer = rig.keep("a", CONTENT)
    rig.wanted = ["a", newer.digest]
    fetch(rig, newer.digest)
    fetch(rig, "a")

    # As somebody does who may write the parent's images, and sign none.
    artefact.write_bytes(content)
    (rig.store.path / "names/a.json").write_bytes(signed or b"")

    with pytest.raises(HapteraError, match="earlier one: its number is 0, and 1 was here"):
        fetch(rig, "a")
    with pytest.raises(Refused, match="there is no image"):
        fetch(rig, newer.digest)

    # To go back on purpose is to build it anew.
    rig.keep("a", SHORT)
    assert fetch(rig, "a").read_bytes() == SHORT


def test_a_node_on_which_a_newer_one_never_was_takes_the_older_one(rig: Rig) -> None:
    """What is seen first is believed, and so it is after a boot that has forgotten all."""
    rig.keep("a", SHORT)
    signed = rig.store.signed("a") or b""
    older = rig.store.artefact(rig.keep("b", SHORT).digest).read_bytes()
    rig.keep("a", CONTENT)
    (rig.store.path / "names/a.json").write_bytes(signed)
    rig.wanted = ["a"]
    assert fetch(rig, "a").read_bytes() == older


def test_the_number_of_a_name_goes_up_whatever_the_clock_does(rig: Rig) -> None:
    assert rig.store.number("a", 1_700_000_000.5) == 1_700_000_000
    rig.keep("a", SHORT)
    rig.keep("a", CONTENT)
    assert rig.store.number("a", 0) == 2
    assert rig.store.number("a", 7) == 7


def test_of_two_names_for_the_same_artefact_one_is_dropped_while_the_other_is_kept(
    rig: Rig,
) -> None:
    """Who drops it has seen that no name is left for it just before the other name came."""

    class Slow(ImageStore):
        def signed(self, reference: str) -> bytes | None:
            found = super().signed(reference)
            if reference.startswith(DIGEST):
                other.start()
                other.join(timeout=1)  # It waits for this one now, or is done already.
            return found

    artefacts = [rig.folder / name for name in "xyz"]
    manifests = []
    for place, name, content in zip(artefacts, "aba", (SHORT, SHORT, CONTENT), strict=True):
        place.write_bytes(content)
        told = ImageManifest(name, "", 0, machine(), ("/init",))
        manifests.append(sign(manifest_of(place, told), rig.signer))
    rig.store.keep(artefacts[0], manifests[0])
    other = Thread(target=rig.store.keep, args=(artefacts[1], manifests[1]))
    Slow(rig.store.path).keep(artefacts[2], manifests[2])
    other.join()
    kept = rig.store.manifest("b")
    assert kept is not None
    assert rig.store.has(kept)


def test_an_older_manifest_is_no_answer_to_a_digest(rig: Rig) -> None:
    rig.keep("a", SHORT)
    older = rig.store.signed("a") or b""
    newer = rig.keep("a", CONTENT)
    with pytest.raises(HapteraError, match="the manifest is that of a"):
        verified(older, rig.authority.ca_pem, newer.digest)
