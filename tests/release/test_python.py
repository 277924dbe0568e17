"""The wheel and the sdist of a tag: the same bytes twice, and all of a version from the tag."""

import hashlib
import json
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.release.rig import ROOT, checkout, git, release
from tools.release.notes import section
from tools.release.sbom import bill_of_materials

LOCK = (ROOT / "requirements.txt").read_text()
CHANGELOG = "# Changelog\n\n## 1.1.0, 2027-02-01\n\n- New.\n\n## 1.0.0, 2027-01-01\n\n- Old.\n"


@pytest.mark.long
def test_a_tag_gives_the_same_bytes_twice_whatever_the_umask_is(tmp_path: Path) -> None:
    tree = checkout(tmp_path / "tree", "7.8.9")
    outs = [tmp_path / "first", tmp_path / "second"]
    for out, umask in zip(outs, (0o022, 0o077), strict=True):
        code, said = release(tree, "--part", "python", "--out", out, umask=umask)
        assert code == 0, said

    first, second = ({one.name: one.read_bytes() for one in out.iterdir()} for out in outs)
    assert first == second
    assert set(first) == {
        "haptera-7.8.9-py3-none-any.whl",
        "haptera-7.8.9.tar.gz",
        "haptera-7.8.9.cdx.json",
        "RELEASE.md",
        "SHA256SUMS",
    }
    sums = dict(reversed(line.split("  ")) for line in first["SHA256SUMS"].decode().splitlines())
    assert sums == {
        name: hashlib.sha256(content).hexdigest()
        for name, content in first.items()
        if name != "SHA256SUMS"
    }
    assert first["RELEASE.md"] == b"### Added\n\n- What 7.8.9 has.\n"
    check_contents(tree, outs[0])


def check_contents(tree: Path, out: Path) -> None:
    """The wheel has each file of the package, the version is the tag's, files are nobody's."""
    with zipfile.ZipFile(next(out.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        metadata = wheel.read("haptera-7.8.9.dist-info/METADATA").decode()
        stamped = wheel.read("haptera/__init__.py").decode()
    kept = {str(one.relative_to(tree / "src")) for one in (tree / "src").rglob("*.*")}
    assert {one for one in kept if (tree / "src" / one).is_file()} - names == set()
    assert "\nVersion: 7.8.9\n" in metadata
    assert '__version__ = "7.8.9"' in stamped
    with tarfile.open(next(out.glob("*.tar.gz"))) as sdist:
        assert {(one.uid, one.uname, int(one.mtime)) for one in sdist} == {(0, "", 1_700_000_000)}


@pytest.fixture
def tagless(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is missing: apt install git")
    git(tmp_path, "init", "--quiet")
    (tmp_path / "file").write_text("")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "--quiet", "-m", "all")
    return tmp_path


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ((), "HEAD has 0 tags of versions"),
        (("v1", "1.2.3", "v1.2.3-beta"), "HEAD has 0 tags of versions"),
        (("v1.2.3", "v1.2.4"), "HEAD has 2 tags of versions"),
    ],
)
def test_only_one_tag_of_a_version_makes_a_release(
    tags: tuple[str, ...], said: str, tagless: Path
) -> None:
    for one in tags:
        git(tagless, "tag", one)
    code, told = release(tagless)
    assert (code, said in told, "git tag" in told) == (1, True, True)


def test_what_no_commit_holds_is_not_released(tagless: Path) -> None:
    git(tagless, "tag", "v1.2.3")
    (tagless / "file").write_text("changed")
    code, told = release(tagless)
    assert (code, "changes that no commit holds" in told) == (1, True)


def test_the_text_of_a_release_is_its_section_alone() -> None:
    assert section(CHANGELOG, "1.1.0") == "- New.\n"
    assert section(CHANGELOG, "1.0.0") == "- Old.\n"
    with pytest.raises(SystemExit, match="no section for 1\\.1"):
        section(CHANGELOG, "1.1")


def test_the_bill_of_materials_has_each_package_of_the_lock_with_its_hashes() -> None:
    bill = json.loads(bill_of_materials(LOCK, "7.8.9", 1_700_000_000))

    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    told = {(one["name"], one["version"]) for one in bill["components"]}
    pinned = {tuple(line.split(" ")[0].split("==")) for line in LOCK.splitlines() if "==" in line}
    assert told == {pin for pin in pinned if pin[0][0].isalpha()}
    references = [ref for one in bill["components"] for ref in one["externalReferences"]]
    assert sum(len(one["hashes"]) for one in references) == LOCK.count("--hash=sha256:")
    assert bill == json.loads(bill_of_materials(LOCK, "7.8.9", 1_700_000_000))
    refs = [one["bom-ref"] for one in bill["components"]]
    assert bill["dependencies"][0]["dependsOn"] == refs
    assert len(set(refs)) == len(refs)


def test_make_release_says_what_it_is_made_of(tagless: Path) -> None:
    """The command that pages name is the one that is tried here."""
    planned = subprocess.run(
        ["make", "--dry-run", "release", f"ARGS=--checkout {tagless}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert f"python -m tools.release --checkout {tagless}" in planned
