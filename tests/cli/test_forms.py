"""The forms of `-o`: nothing but names for the next command, and JSON of the published shape."""

import json
import shlex
from pathlib import Path

import msgspec
import pytest
import yaml

from haptera.cli.main import OK
from haptera.kinds.inventory import FileSort, ImageFile, Inventory
from haptera.model.answers.past import Happened, PastView, Sort
from haptera.model.changes import Declare, Undeclare
from haptera.model.entity import EntityId
from haptera.rest.unclaimed import UnclaimedView
from tests.cli.clusters import RACK, cluster_of
from tests.cli.rig import watching
from tests.cli.test_commands import typed
from tests.docs.answer_schemas import ANSWERS, FOLDER, VERBS
from tests.docs.problem_schema import valid_by

pytestmark = pytest.mark.net

N1, N2, N3 = RACK
WEB = EntityId("service", "web", "rack1n2")
SITE = """\
cluster: quick
nodes: {"rack1n[1-4]": {}}
services: {web: {command: serve}}
desired:
  rack1n[1-2]: {power: off}
  rack1n3: {power: on}
  web@rack1n2: {run: running}
policies: {slow: {for: "*", attempts: 2}}
"""
INVENTORY = {"_meta": {"hostvars": {"n1": {}, "n2": {}}}, "all": {"hosts": ["n1", "n2"]}}


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """Three nodes that are on, a service; the third is stuck."""
    with cluster_of("twice", monkeypatch, tmp_path, "admin") as one:
        Path("site.yaml").write_text(SITE)
        Path("hosts.json").write_text(json.dumps(INVENTORY))
        yield one


def test_modules_are_named_a_line_each(cluster, capsys):
    code, out, _ = typed(capsys, "module", "list", "-o", "name")
    assert (code, {"labnode", "service"} <= {*out.splitlines()}) == (OK, True)
    assert "node" not in out.splitlines(), "kinds are no modules"


SEEDS = Path(__file__).parents[1] / "site/imports/seeds"
# What is typed before, and a command whose answer is looked at.
ANSWERED = [
    "apply site.yaml",
    "apply site.yaml --dry-run",
    "plan site.yaml",
    "diff site.yaml",
    "diff --at '1970-01-01 00:01'",
    "export",
    "import ansible hosts.json",
    "import clustershell groups.cfg",
    f"import layercake {shlex.quote(str(SEEDS / 'state.json'))}",
    "import netbox devices.json",
    "import warewulf nodes.conf",
    "check site.yaml",
    "check hosts.json",
    "status",
    "nodes",
    "why",
    "why node:rack1n3",
    "chain node:rack1n3",
    "logs service:web@rack1n2",
    "console rack1n1",
    "get node",
    "get node:rack1n1",
    "get rack1*",
    "get node --at '1970-01-01 00:01'",
    "set node:rack1n1 power=off --take",
    "set node:rack1n[1-2] power=off --take",
    "set node:rack1n[1-2] power=off --take --dry-run",
    "unset service:web@rack1n2 run",
    "retry rack1*",
    "history",
    "history --all",
    "history --audit",
    "lemons",
    "revert 7 --yes",
    "secret list",
    "trial start ledger serve",
    "trial start ledger serve; trial status",
    "trial start ledger serve; trial promote ledger",
    "trial start ledger serve; trial undo ledger",
    "trial start ledger serve; trial abort ledger",
    "token certify eve eve.pem",
    "token make eve; token list",
    "token make eve",
    "token make eve; token revoke t1",
    "evict n1",
    "unclaimed",
    "claim 52:54:00:00:00:03 rack1n1",
    "override rack1n1 -m hung",
    "submit true; jobs",
    "submit true; cancel job:1",
    "submit true; why job:1",
    "submit true; why job:*",
    "submit true; get job:1",
    "submit true; get job",
    "submit true; queue",
    "drain rack1n1 -m disk",
    "hold rack1n1 -m disk",
    "drain rack1n1 -m disk; undrain rack1n1",
    "brake",
    "freeze rack1n1 -m fans; freeze",
    "freeze rack1n1 -m fans",
    "freeze rack1n[1-2] -m fans; thaw rack1n1",
    "module list",
    "image build mine images/mine; image list",
    "image diff debian-a debian-b",
    "image build mine images/mine; image show mine",
]


def verb_of(words):
    """Which verb it is: the longest that it begins with."""
    return max((one for one in ANSWERS if f"{words} ".startswith(f"{one} ")), key=len)


@pytest.fixture
def filled(cluster, tmp_path):
    """The same, with all that a verb could tell of."""
    Path("groups.cfg").write_text("all: n[1-2]\n")
    Path("devices.json").write_text('{"count": 1, "results": [{"name": "n1"}]}')
    Path("nodes.conf").write_text("nodeprofiles: {}\nnodes:\n  n1: {}\n")
    (tmp_path / ".haptera" / "parent").mkdir(parents=True)
    cluster.do(cluster.backend.write, Declare(EntityId("group", "ledger", None), {}, "site"))
    cluster.backend.logs[WEB] = b"serves\n"
    cluster.backend.logs[N1] = b"\x1b[1mboots\x1b[0m\r\n"
    cluster.backend.strange = [UnclaimedView("52:54:00:00:00:03", "BIOS", None, 2, 1.0, 3.0)]
    view = PastView(str(N1), {}, {"power": "on"}, {"power": "off"}, "acting", "it boots")
    cluster.backend.pasts[60] = [view]
    for image, mode in (("debian-a", 0o755), ("debian-b", 0o700)):
        one = ImageFile("/x", FileSort.FOLDER, mode, 0, 0)
        found = Inventory(f"sha256:{image}", [one], {"libc6": image})
        cluster.backend.inventories[image] = msgspec.json.encode(found)
    cluster.backend.happenings = [Happened(999.0, str(N1), Sort.TRIED, "bmc.on", "worked")]
    return cluster


@pytest.mark.parametrize("session", ANSWERED)
def test_json_is_of_the_published_shape_and_yaml_says_the_same(filled, capsys, session):
    *before, words = session.split("; ")
    for one in before:
        assert typed(capsys, *shlex.split(one))[0] == OK
    verb = verb_of(words)
    told = json.loads(typed(capsys, *shlex.split(words), "-o", "json")[1])
    assert has_shape(told, verb)
    assert valid_by(told, FOLDER / VERBS, verb.replace(" ", "-"))
    if verb in REPEATABLE:
        assert yaml.safe_load(typed(capsys, *shlex.split(words), "-o", "yaml")[1]) == told


# Asked again, they answer the same.
REPEATABLE = {
    "plan",
    "diff",
    "export",
    "check",
    "nodes",
    "why",
    "chain",
    "logs",
    "console",
    "token list",
    "brake",
    "queue",
}


def has_shape(told, verb):
    """Whether it is one of the verb's shapes, and has nothing besides."""
    for shape in ANSWERS[verb]:
        try:
            read = msgspec.convert(told, shape)
        except msgspec.ValidationError:
            continue
        if json.loads(msgspec.json.encode(read)) == told:
            return True
    return False


def test_each_verb_with_a_shape_was_asked():
    asked = {verb_of(one.split("; ")[-1]) for one in ANSWERED}
    # A minOS takes half a minute to build, power and reload are what set writes, what comes after
    # the command of submit is the command's, and tests/cli/test_roll.py has rolls.
    others = {"watch", "power", "minos build", "minos show", "submit", "module reload"}
    # Each of these has a file of tests of its own.
    others |= {
        "debug story",
        "health scores",
        "roll timeline",
        "rehearse apply",
        "rehearse compare",
        "rehearse roll",
        "health",
        "health rules",
        "health test",
        "doctor",
        "top",
    }
    assert asked | others == ANSWERS.keys()
    assert not has_shape({"free": []}, "thaw")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "yaml", "name"])
def test_each_change_is_a_document_of_its_own(cluster, form):
    with watching("watch", "-o", form, "node:rack1n1") as lines:
        text = next(lines)
        cluster.do(cluster.backend.write, Undeclare(N1))
        for line in lines:
            text += line
            if "gone" in line or form == "name":
                break
    if form == "name":
        assert text == f"{N1}\n{N1}\n"
        return
    view, gone = map(json.loads, text.splitlines()) if form == "json" else yaml.safe_load_all(text)
    assert (view["entity"], gone) == (str(N1), {"entity": str(N1), "gone": True})
    assert has_shape(view, "watch")
    assert has_shape(gone, "watch")
