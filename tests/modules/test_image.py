"""Images: signed by the authority alone, kept by digest, and built by a real buildah."""

import asyncio
import hashlib
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from haptera.images.manifest import ImageManifest, Signed, read, sign, verified
from haptera.kinds.image import State
from haptera.kinds.inventory import Inventory
from haptera.model.entity import EntityId
from haptera.modules.image.build import ImageFormat, described
from haptera.modules.image.difference import Aspect, difference
from haptera.modules.image.module import (
    Image,
    ImageSettings,
    build,
    connect,
    look_applied,
    look_state,
    module,
    remove,
)
from haptera.modules.image.store import ImageStore, store_of
from haptera.modules.system.mounts import EROFS, EROFS_AT
from haptera.runtime.clock import wall_s
from haptera.runtime.identity.pki import issue_images, issue_parent, open_authority
from haptera.sdk import HapteraError, Refused, Target, read_foreign
from tests.kills.processes import wait_for
from tests.lab.rig import until
from tests.modules.image_rig import Rig, a_root, needs

MANIFEST = ImageManifest("a", "sha256:00", 3, "amd64", ("/init",), ("A=b",), "/srv", "SIGINT", "/r")


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.mark.parametrize("reference", ["a", "sha256:00"])
def test_what_the_authority_signed_is_believed(rig: Rig, reference: str) -> None:
    signed = sign(MANIFEST, rig.signer)

    assert verified(signed, rig.authority.ca_pem, reference) == MANIFEST


def test_a_manifest_that_was_changed_is_not_believed(rig: Rig) -> None:
    signed = msgspec.json.decode(sign(MANIFEST, rig.signer), type=Signed)
    other = msgspec.structs.replace(MANIFEST, digest="sha256:01")
    forged = msgspec.structs.replace(signed, manifest=msgspec.json.encode(other))

    with pytest.raises(HapteraError, match="the signature does not fit"):
        verified(msgspec.json.encode(forged), rig.authority.ca_pem, "a")


@pytest.mark.parametrize("claimed", ["its own cluster", "this cluster"])
def test_the_signer_of_another_authority_is_not_believed(
    rig: Rig, tmp_path: Path, claimed: str
) -> None:
    """Anybody can make an authority that says to be this cluster's."""
    cluster = rig.authority.cluster if claimed == "this cluster" else None
    other = open_authority(tmp_path / "other", wall_s(), cluster)
    signed = sign(MANIFEST, issue_images(other, wall_s()).read_bytes())

    with pytest.raises(HapteraError, match="not signed by the cluster's authority"):
        verified(signed, rig.authority.ca_pem, "a")


def test_who_may_do_something_else_may_not_sign_images(rig: Rig) -> None:
    """A node's key, or the parent's own, makes no image."""
    for identity in (rig.identity, issue_parent(rig.authority, wall_s())):
        signed = sign(MANIFEST, identity.read_bytes())
        with pytest.raises(
            HapteraError, match="the certificate that signed it may not sign images"
        ):
            verified(signed, rig.authority.ca_pem, "a")


def test_another_images_manifest_is_not_taken_for_the_one_asked_for(rig: Rig) -> None:
    with pytest.raises(HapteraError, match="the manifest is that of a"):
        verified(sign(MANIFEST, rig.signer), rig.authority.ca_pem, "b")


@pytest.mark.parametrize("content", [b"", b"{}", b"not json"])
def test_rubbish_is_no_manifest(content: bytes) -> None:
    with pytest.raises(HapteraError, match="not the manifest of an image"):
        read(content)


def test_an_image_is_found_by_its_name_and_by_its_digest(rig: Rig) -> None:
    kept = rig.keep("a", b"one")

    assert rig.store.manifest("a") == rig.store.manifest(kept.digest) == kept
    assert rig.store.has(kept)
    assert (rig.store.manifest("b"), rig.store.manifest("sha256:00")) == (None, None)


@pytest.mark.parametrize("reference", ["../outside", "/etc/outside", "a/b", "", "..", "a\0b"])
def test_a_reference_leads_to_no_other_folder(rig: Rig, reference: str) -> None:
    rig.keep("a", b"one")
    (rig.store.path / "outside.json").write_bytes(rig.store.signed("a") or b"")
    assert rig.store.signed(reference) is None
    assert rig.store.manifest(reference) is None


def test_an_artefact_goes_with_the_last_name_that_stands_for_it(rig: Rig) -> None:
    first, second = rig.keep("a", b"one"), rig.keep("b", b"one")
    assert first.digest == second.digest

    rig.keep("a", b"other")
    assert rig.store.artefact(first.digest).exists()
    rig.store.remove("b")
    assert not rig.store.artefact(first.digest).exists()
    rig.store.remove("a")
    assert [*(rig.store.path / "sha256").iterdir()] == []
    assert [*(rig.store.path / "inventories").iterdir()] == []
    rig.store.remove("a")  # again: nothing is there, which is no error


def test_an_artefact_that_was_cut_short_is_not_there(rig: Rig) -> None:
    kept = rig.keep("a", b"one")
    rig.store.artefact(kept.digest).write_bytes(b"on")

    assert not rig.store.has(kept)
    assert asyncio.run(look_state(an_image(rig, "a", ""))) is State.ABSENT


def an_image(rig: Rig, name: str, recipe: str, form: ImageFormat = ImageFormat.SQUASHFS) -> Image:
    values: dict[str, str | int] = {"recipe": recipe} if recipe else {}
    entity = EntityId("image", name, None)
    run_dir = rig.authority.directory
    settings = ImageSettings(format=form)
    target = Target(entity, values=values, digest="wanted", run_dir=run_dir, settings=settings)
    return connect(replace(target, session=asyncio.Semaphore(1)))


SAID = {
    "architecture": "amd64",
    "config": {
        "Entrypoint": ["/sbin/serve"],
        "Cmd": ["-x", ""],
        "Env": ["A=b"],
        "WorkingDir": "/srv",
        "StopSignal": "SIGINT",
    },
}


def described_as(**changed: object) -> ImageManifest:
    oci = {**SAID, "config": {**SAID["config"], **changed}}  # type: ignore[dict-item]
    return described("a", "r", read_foreign("buildah 9.9", msgspec.json.encode({"OCIv1": oci})))


def test_what_buildah_says_of_an_image_is_read_by_its_shape() -> None:
    whole = ImageManifest(
        "a", "", 0, "amd64", ("/sbin/serve", "-x", ""), ("A=b",), "/srv", "SIGINT", "r"
    )
    assert described_as() == whole
    assert described_as(Entrypoint=None, Cmd="/bin/sh").command == ("/bin/sh",)
    assert described_as(Entrypoint=None, Cmd=None).command == ("/sbin/init",)
    assert described_as(Labels=7, WorkingDir="", StopSignal=15).stop_signal == "15"
    said = r"buildah 9\.9: OCIv1\.config\.Cmd\[0\] is an object, not a text"
    with pytest.raises(HapteraError, match=said):
        described_as(Cmd=[{"exec": "/bin/sh"}])
    with pytest.raises(HapteraError, match=r"buildah 9\.9: OCIv1 is absent, not there"):
        described("a", "r", read_foreign("buildah 9.9", b"{}"))


def test_a_build_that_was_killed_is_begun_again_at_once() -> None:
    steps = {one.name: one for one in module.manifest().steps}
    for name in ("build", "rebuild"):
        assert (steps[name].ends_with_call, steps[name].late_ms) == (True, 1_000)


# A process that is killed while a tool of it runs, whose number it has told.
KILLED = """
import asyncio, os, signal
from haptera.sdk.commands import tied
async def begin():
    tool = await asyncio.create_subprocess_exec("sleep", "600", preexec_fn=tied)
    print(tool.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(begin())
"""


@pytest.mark.net
def test_the_tools_of_a_build_end_with_who_began_them() -> None:
    told = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, check=False)
    place = Path(f"/proc/{int(told.stdout)}/stat")
    wait_for("the tool ends", lambda: not place.exists() or ") Z " in place.read_text(), 60)


async def test_so_many_images_are_built_at_once_and_the_next_one_says_that_it_waits(
    rig: Rig, tmp_path: Path
) -> None:
    (tmp_path / "recipe").mkdir()
    told: list[str] = []

    one = an_image(rig, "a", str(tmp_path / "recipe"))
    one = connect(replace(one.target, tell=lambda text, _done: told.append(text)))
    await one.target.session.acquire()
    building = asyncio.create_task(build(one))
    await until(lambda: told)
    assert told == ["waits until other images are built"]
    one.target.session.release()
    with pytest.raises(Refused, match="there is no Dockerfile in"):
        await building
    assert told[1:] == ["builds"]


def test_without_a_recipe_nothing_is_built(rig: Rig, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no recipe is desired"):
        asyncio.run(build(an_image(rig, "a", "")))
    with pytest.raises(Refused, match="there is no Dockerfile in"):
        asyncio.run(build(an_image(rig, "a", str(tmp_path))))
    assert rig.store.manifest("a") is None


real = [
    pytest.mark.campaign,
    pytest.mark.skipif(os.geteuid() != 0, reason="buildah needs root here"),
    needs("buildah", "mksquashfs", "unsquashfs"),
]


def marked(function):
    for mark in real:
        function = mark(function)
    return function


def a_recipe(folder: Path, *lines: str) -> Path:
    folder.mkdir()
    (folder / "Dockerfile").write_text("\n".join(["FROM scratch", *lines, ""]))
    (folder / "hello").write_text("hello\n")
    os.utime(folder / "hello", (1e9, 1e9))  # older than any build of it
    return folder


@marked
def test_a_recipe_becomes_an_image_that_says_how_it_runs(rig: Rig, tmp_path: Path) -> None:
    recipe = a_recipe(
        tmp_path / "r",
        "COPY hello /sbin/hello",
        "ENV A=b",
        "WORKDIR /srv",
        "STOPSIGNAL SIGINT",
        'ENTRYPOINT ["/sbin/hello"]',
        'CMD ["x"]',
    )
    one = an_image(rig, "a", str(recipe))
    asyncio.run(build(one))

    kept = rig.store.manifest("a")
    assert kept is not None
    assert (kept.command, kept.folder, kept.stop_signal, kept.recipe) == (
        *(("/sbin/hello", "x"), "/srv", "SIGINT", str(recipe)),
    )
    assert "A=b" in kept.environment
    assert asyncio.run(look_state(one)) is State.BUILT
    assert one.target.take_note() == f"{kept.digest}, 0.0 MB"
    assert asyncio.run(look_applied(one)) == "wanted"
    assert asyncio.run(look_applied(an_image(rig, "a", "/elsewhere"))) != "wanted"
    assert rig.store.signed("a") is not None
    assert not (rig.store.work / "a").exists()


@pytest.mark.parametrize(
    "form",
    [ImageFormat.SQUASHFS, pytest.param(ImageFormat.EROFS, marks=needs("mkfs.erofs"))],
)
@marked
def test_the_same_recipe_is_the_same_digest(rig: Rig, tmp_path: Path, form: ImageFormat) -> None:
    recipe = str(a_recipe(tmp_path / "r", "COPY hello /hello", "ADD hello /made/"))
    for name in ("a", "b"):
        asyncio.run(build(an_image(rig, name, recipe, form)))

    first, second = rig.store.manifest("a"), rig.store.manifest("b")
    assert first is not None
    assert second is not None
    assert first.digest == second.digest
    content = rig.store.artefact(first.digest).read_bytes()
    assert content[EROFS_AT:].startswith(EROFS) == (form is ImageFormat.EROFS)
    assert b"/made/hello" in (rig.store.inventory("a") or b"")


WITH_SHELL = ("COPY root/ /", "ADD hello /made/")


def a_recipe_with_shell(folder: Path, *lines: str) -> str:
    recipe = a_recipe(folder, *WITH_SHELL, *lines)
    root = a_root(recipe / "root", "true")
    for one in root.rglob("*"):
        os.utime(one, (1e9, 1e9), follow_symlinks=False)  # older than any build of it
    return str(recipe)


def built(rig: Rig, name: str, recipe: str) -> ImageManifest:
    asyncio.run(build(an_image(rig, name, recipe)))
    kept = rig.store.manifest(name)
    assert kept is not None
    return kept


@marked
def test_a_recipe_whose_tools_heed_source_date_epoch_is_the_same_at_another_time(
    rig: Rig, tmp_path: Path
) -> None:
    stamp = 'RUN echo "made at $SOURCE_DATE_EPOCH" >/stamp'
    recipe = a_recipe_with_shell(tmp_path / "r", "ARG SOURCE_DATE_EPOCH", stamp)
    first = built(rig, "a", recipe)
    # The next one begins in another second, as all have it that are older than this file.
    wait_for("another second", lambda: int(time.time()) > int(first_mtime(rig, first)) or None, 60)

    second = built(rig, "b", recipe)
    assert first.digest == second.digest
    files = msgspec.json.decode(rig.store.inventory("a") or b"", type=Inventory).files
    told = {one.path: one.content for one in files}
    assert told["/stamp"] == hashlib.sha256(b"made at 315532800\n").hexdigest()


def first_mtime(rig: Rig, manifest: ImageManifest) -> float:
    return rig.store.artefact(manifest.digest).stat().st_mtime


@marked
def test_where_a_recipe_makes_something_else_each_time_the_difference_names_it(
    rig: Rig, tmp_path: Path
) -> None:
    recipe = a_recipe_with_shell(
        tmp_path / "r", "RUN read -r x </proc/sys/kernel/random/uuid; echo $x >/identity"
    )
    first, second = built(rig, "a", recipe), built(rig, "b", recipe)
    assert first.digest != second.digest

    before, after = (
        msgspec.json.decode(rig.store.inventory(one) or b"", type=Inventory) for one in "ab"
    )
    found = difference(before, after)
    assert [(one.after.path, one.aspects) for one in found.changed] == [
        ("/identity", (Aspect.CONTENT,))
    ]
    assert (found.packages, found.added, found.removed) == ([], [], [])


@marked
def test_a_recipe_that_fails_is_told_by_its_last_lines_and_leaves_nothing(
    rig: Rig, tmp_path: Path
) -> None:
    recipe = a_recipe(tmp_path / "r", "COPY nowhere /hello")

    with pytest.raises(Refused, match=r"buildah ended with status \d+: .*nowhere.*no such file"):
        asyncio.run(build(an_image(rig, "a", str(recipe))))
    assert rig.store.manifest("a") is None
    assert [*rig.store.work.iterdir()] == []
    assert "COPY nowhere" in rig.store.log("a").read_text()


@marked
def test_what_is_not_to_be_there_is_removed(rig: Rig, tmp_path: Path) -> None:
    one = an_image(rig, "a", str(a_recipe(tmp_path / "r", "COPY hello /hello")))
    asyncio.run(build(one))
    asyncio.run(remove(one))

    assert asyncio.run(look_state(one)) is State.ABSENT
    assert [*(rig.store.path / "sha256").iterdir()] == []


def test_the_store_of_a_parent_is_below_its_run_directory(tmp_path: Path) -> None:
    assert store_of(tmp_path) == ImageStore(tmp_path / "images")
