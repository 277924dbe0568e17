"""Images at a parent below another one: taken over whole or not at all, then served to nodes."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from haptera.images.fetch import ArtefactSource
from haptera.images.manifest import DIGEST
from haptera.model.entity import EntityId
from haptera.modules.image import module
from haptera.modules.image.module import Image, ImageSettings, build, connect, look_applied
from haptera.sdk import HapteraError, Refused, Target
from haptera.sdk.uplink import UPLINK
from tests.modules.image_rig import Rig

pytestmark = pytest.mark.net

CONTENT = bytes(range(256)) * 12_000
RECIPE = "/srv/a"
WITHIN_S = 30


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, ["a"])


def below(rig: Rig, port: int, **settings: int) -> Image:
    """The image at a parent below, which has a signer of its own of the same authority."""
    home = rig.folder / "below"
    (home / "images").mkdir(parents=True, exist_ok=True)
    identity = home / "images/signer.pem"
    identity.write_bytes(rig.signer)
    said = msgspec.structs.replace(rig.parent(port).uplink, identity=str(identity))
    (home / "images" / UPLINK).write_bytes(msgspec.json.encode(said))
    entity = EntityId("image", "a", None)
    values = {"recipe": RECIPE}
    settled = ImageSettings(**settings)
    return connect(Target(entity, values=values, digest="d", run_dir=home, settings=settled))


def taken_over(rig: Rig, **settings: int) -> Image:
    async def run() -> Image:
        async with rig.served() as parent:
            one = below(rig, parent.uplink.port, **settings)
            await build(one)
            return one

    return asyncio.run(run())


def test_it_is_taken_over_and_served_to_nodes_though_the_parent_above_is_away(rig: Rig) -> None:
    manifest = rig.keep("a", CONTENT, recipe=RECIPE)
    store = taken_over(rig).store
    assert (store.signed("a"), store.has(manifest)) == (rig.store.signed("a"), True)

    async def fetch() -> Path:
        rig.store = store
        async with rig.served() as parent:
            node = ArtefactSource(parent, rig.run_dir / "images")
            return await asyncio.to_thread(lambda: node.artefact(node.manifest("a")[1]))

    assert asyncio.run(fetch()).read_bytes() == CONTENT


def test_what_broke_off_is_gone_on_with(rig: Rig) -> None:
    manifest = rig.keep("a", CONTENT, recipe=RECIPE)
    coming = rig.folder / "below/images/coming/a"
    coming.mkdir(parents=True)
    part = coming / f"{manifest.digest.removeprefix(DIGEST)}.part"
    part.write_bytes(CONTENT[:1_000_000])
    # Only the rest is asked for: nobody notices that the beginning is gone.
    rig.store.artefact(manifest.digest).write_bytes(bytes(1_000_000) + CONTENT[1_000_000:])

    assert taken_over(rig).store.artefact(manifest.digest).read_bytes() == CONTENT


def test_one_flipped_bit_is_found_and_nothing_of_it_is_kept(rig: Rig) -> None:
    manifest = rig.keep("a", CONTENT, recipe=RECIPE)
    rig.store.artefact(manifest.digest).write_bytes(b"x" + CONTENT[1:])

    with pytest.raises(HapteraError, match=manifest.digest):
        taken_over(rig)
    assert [*(rig.folder / "below/images/sha256").iterdir()] == []


def test_what_another_clusters_authority_has_signed_is_not_taken(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    mine, rig.signer = rig.signer, Rig(tmp_path / "other").signer
    rig.keep("a", CONTENT, recipe=RECIPE)
    rig.signer = mine

    with pytest.raises(HapteraError, match="is not signed by the cluster's authority"):
        taken_over(rig)
    assert [*(rig.folder / "below/images/names").iterdir()] == []


def test_what_does_not_fit_is_refused_before_it_is_fetched(rig: Rig) -> None:
    rig.keep("a", CONTENT, recipe=RECIPE)

    with pytest.raises(Refused, match="the store is full"):
        taken_over(rig, quota_mb=2)
    assert not (rig.folder / "below/images/coming").exists()


@pytest.mark.parametrize("there", ["nothing", "another recipe's"])
def test_what_the_parent_above_has_not_built_is_waited_for(
    rig: Rig, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ASKED_EVERY_S", 0.05)
    if there != "nothing":
        rig.keep("a", b"older", recipe="/srv/older")
    told: list[str] = []

    async def run() -> Image:
        async with rig.served() as parent:
            one = below(rig, parent.uplink.port)
            heard = asyncio.Event()

            def tell(text: str, _done: float | None) -> None:
                told.append(text)
                heard.set()

            object.__setattr__(one.target, "tell", tell)
            building = asyncio.ensure_future(build(one))
            async with asyncio.timeout(WITHIN_S):
                await heard.wait()
            rig.keep("a", CONTENT, recipe=RECIPE)
            await building
            return one

    store = asyncio.run(run()).store
    assert store.signed("a") == rig.store.signed("a")
    assert "there is no image" in told[0] or "has not built it yet" in told[0]


def test_it_is_taken_over_anew_where_the_name_stands_for_another_one_above(rig: Rig) -> None:
    rig.keep("a", CONTENT, recipe=RECIPE)
    one = taken_over(rig)
    assert asyncio.run(look_applied(one)) == "d"  # of a parent that is away, nothing is known

    async def look() -> str:
        async with rig.served() as parent:
            return await look_applied(below(rig, parent.uplink.port))

    assert asyncio.run(look()) == "d"
    rig.keep("a", b"built anew", recipe=RECIPE)
    assert asyncio.run(look()) != "d"
