"""`haptera image`: what it writes of which entity, and what it says of how that stands."""

import msgspec
import pytest

from haptera.cli.main import OK, REFUSED
from haptera.kinds.inventory import FileSort, ImageFile, Inventory
from haptera.model.answers.views import ObservedView
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from tests.api.serving import serving
from tests.cli.test_commands import point_at, typed

pytestmark = pytest.mark.net
SITES = EntityId("image", "debian-a", None)
MINE = EntityId("image", "mine", None)
SYSTEM = EntityId("system", "compute", "n1")


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    changes = [
        Declare(node_id("n1"), {}, "site"),
        Declare(SITES, {}, "site"),
        SetDesired(SITES, "state", "built", "site"),
        SetDesired(SITES, "recipe", "/srv/a", "site"),
        Declare(SYSTEM, {}, "site"),
        SetDesired(SYSTEM, "image", "debian-a", "site"),
    ]
    with serving(*changes) as one:
        point_at(one.url, "write-token", monkeypatch, tmp_path)
        monkeypatch.chdir(tmp_path)
        yield one


def wanted(cluster, entity):
    stored = cluster.backend.store[entity]
    return stored.owner, {name: one.value for name, one in stored.desired.items()}


def test_build_desires_an_image_that_nobody_declared(cluster, capsys, tmp_path):
    (tmp_path / "recipe").mkdir()
    code, out, errors = typed(capsys, "image", "build", "mine", "recipe")

    assert (code, out, errors) == (OK, "image:mine is built\n", "")
    owner, values = wanted(cluster, MINE)
    assert owner.startswith("user:")
    assert values == {"state": "built", "recipe": str(tmp_path / "recipe")}


@pytest.mark.parametrize(
    ("typed_as", "desired"),
    [
        ("docker://docker.io/library/debian:12", "docker://docker.io/library/debian:12"),
        ("oci:layout:latest", "oci:{}/layout:latest"),
        ("docker-archive:a.tar", "docker-archive:{}/a.tar"),
        ("a.tar", "{}/a.tar"),
        ("/srv/a", "/srv/a"),
    ],
)
def test_import_desires_an_image_by_the_whole_place_of_its_source(
    cluster, capsys, tmp_path, typed_as, desired
):
    typed(capsys, "image", "build", "mine", "recipe")
    assert typed(capsys, "image", "import", "mine", typed_as)[0] == OK
    assert wanted(cluster, MINE)[1] == {"state": "built", "source": desired.format(tmp_path)}


def test_the_sites_image_is_left_to_the_site_unless_taken(cluster, capsys):
    typed(capsys, "set", "system:compute@n1", "image=other", "--take")
    code, _, errors = typed(capsys, "image", "rm", "debian-a")
    assert (code, "belongs to site" in errors) == (REFUSED, True)
    assert typed(capsys, "image", "rm", "debian-a", "--take", "-m", "superseded")[0] == OK
    assert wanted(cluster, SITES)[1] == {"state": "absent"}


@pytest.mark.parametrize("by", ["image", "spare"])
def test_an_image_that_is_used_is_not_removed_and_it_says_by_whom(cluster, capsys, tmp_path, by):
    typed(capsys, "image", "build", "mine", str(tmp_path))
    typed(capsys, "set", "system:compute@n1", f"{by}=mine", "--take")

    for attempt in (("rm", "mine"), ("rm", "mine", "--take")):
        code, out, errors = typed(capsys, "image", *attempt)
        assert (code, out) == (REFUSED, "")
        assert errors.startswith("error: used by system:compute@n1\n  image:mine\n")
    assert wanted(cluster, MINE)[1]["state"] == "built"


def test_gc_removes_what_nobody_uses_and_says_so_before(cluster, capsys, tmp_path):
    for name in ("digested", "mine", "rolled", "used"):
        typed(capsys, "image", "build", name, str(tmp_path))
        noted = ObservedView("built", True, "read", "image", 40, note=f"sha256:{name}, 1.0 MB")
        cluster.backend.extra[EntityId("image", name, None)] = {"observed": {"state": noted}}
    words = ("system:compute@n1", "image=used", "spare=sha256:digested", "--take")
    typed(capsys, "set", *words)
    typed(capsys, "set", "roll:r", "image=rolled")

    would = "image:mine would be removed: sha256:mine, 1.0 MB\n1.0 MB would be freed\n"
    assert typed(capsys, "image", "gc", "--dry-run") == (OK, would, "")
    assert wanted(cluster, MINE)[1]["state"] == "built"
    assert typed(capsys, "image", "gc")[0] == OK
    assert wanted(cluster, MINE)[1] == {"state": "absent"}
    for name in ("digested", "rolled", "used"):
        assert wanted(cluster, EntityId("image", name, None))[1]["state"] == "built"
    assert typed(capsys, "image", "gc") == (
        OK,
        "every image is used, or declared by a site file\n",
        "",
    )


def test_what_was_removed_is_listed_no_more(cluster, capsys):
    typed(capsys, "set", "system:compute@n1", "image=other", "--take")
    assert typed(capsys, "image", "list", "-o", "name") == (OK, "debian-a\n", "")
    typed(capsys, "image", "rm", "debian-a", "--take")
    assert typed(capsys, "image", "list", "-o", "name") == (OK, "", "")


def test_show_names_the_systems_that_are_to_run_it(cluster, capsys):
    code, out, _ = typed(capsys, "image", "show", "debian-a")
    assert (code, out.splitlines()[-1]) == (OK, "  for system:compute@n1")


@pytest.mark.parametrize("verb", ["show", "rm"])
def test_an_image_that_is_not_there_is_refused_and_not_begun(cluster, capsys, verb):
    code, _, errors = typed(capsys, "image", verb, "none")
    assert (code, errors.splitlines()[0]) == (REFUSED, "error: there is no image:none")
    assert EntityId("image", "none", None) not in cluster.backend.store


def test_other_entities_are_not_begun_by_desiring_something(cluster, capsys):
    """An image is the cluster's; a service needs a node, and to be declared on it."""
    assert typed(capsys, "set", "service:web@n1", "run=running")[0] == REFUSED
    assert typed(capsys, "set", "image:x", "state=none")[0] == REFUSED
    assert EntityId("image", "x", None) not in cluster.backend.store


def an_inventory(cluster, image, *files, **packages):
    found = Inventory(f"sha256:{image}", list(files), packages)
    cluster.backend.inventories[image] = msgspec.json.encode(found)


def test_diff_says_what_became_of_packages_and_files(cluster, capsys):
    gone = ImageFile("/etc/gone", FileSort.FILE, 0o644, 0, 0, 5, "aa")
    su = ImageFile("/bin/su", FileSort.FILE, 0o4755, 0, 0, 9, "bb")
    bad = ImageFile("/a\x1b[2Jb", FileSort.LINK, 0o777, 0, 0, 0, "su")
    an_inventory(cluster, "debian-a", gone, su, libc6="2.36-9", curl="7")
    changed = msgspec.structs.replace(su, mode=0o755, gid=4, content="cc", size_bytes=1_000_009)
    an_inventory(cluster, "debian-b", changed, bad, libc6="2.36-10")

    assert typed(capsys, "image", "diff", "debian-a", "debian-b") == (
        REFUSED,
        "- curl 7\n"
        "~ libc6 2.36-9 -> 2.36-10\n"
        "+ /a\\x1b[2Jb (link)\n"
        "- /etc/gone (5 bytes)\n"
        "~ /bin/su (9 -> 1000009 bytes, mode 4755 -> 755, owner 0:0 -> 0:4)\n"
        "2 packages; files: 1 added, 1 removed, 1 changed; +1.0 MB before compression\n",
        "",
    )
    assert typed(capsys, "image", "diff", "debian-a", "debian-a") == (
        OK,
        "0 packages; files: 0 added, 0 removed, 0 changed; +0.0 MB before compression\n",
        "",
    )


def test_diff_names_the_image_whose_files_are_not_known(cluster, capsys):
    an_inventory(cluster, "debian-a")
    code, _, errors = typed(capsys, "image", "diff", "debian-a", "debian-x")
    assert (code, errors.splitlines()[:2]) == (
        REFUSED,
        ["error: there is no such image here, or no list of its files", "  image debian-x"],
    )
