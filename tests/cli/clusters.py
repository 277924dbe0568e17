"""Clusters that sessions are typed to; what can happen to them, and what can be asked of them."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from haptera.kinds.inventory import FileSort, ImageFile, Inventory
from haptera.model.answers.explained import Alternative, Explained, Nearest
from haptera.model.answers.past import Happened, PastView, Sort
from haptera.model.answers.views import BrakeView, Condition, LinkView, ObservedView, TriedView
from haptera.model.changes import Author, Change, Declare, SetDesired
from haptera.model.entity import EntityId, node_id, parse_entity
from haptera.queue.asking import ask as ask_for_work
from haptera.queue.entry import Moment, Submission
from haptera.queue.job import JobSpec, JobState, Size
from haptera.queue.work import WorkAsked
from haptera.rest.unclaimed import UnclaimedView
from haptera.runtime.clock import wall_s
from haptera.selectors.nodeset import expand
from tests.api.job_desk import NOW
from tests.api.serving import Serving, serving
from tests.cli.rig import point_at

GIVEN: Final = Path(__file__).parent / "sessions/given"
RACK: Final = [node_id(f"rack1n{number}") for number in (1, 2, 3)]
WEB: Final = EntityId("service", "web", "rack1n1")
CHAIN: Final = [
    LinkView("labnode.switch_on", "brings power to on", "parent"),
    LinkView("labnode.look_agent", "looks at agent", "self", expect="up"),
    LinkView("labnode.reset", "brings power to off", "parent", disruptive=True),
]
SITE: Final = """\
cluster: quick
nodes: {"rack1n[1-3]": {rack: "1"}}
services: {web: {command: "serve {name}"}}
desired:
  rack1n[1-3]: {power: on}
  web@rack1n1: {run: running}
"""
TRUE: Final = JobSpec(("true",), Size(2, 512))


def declared(*entities: EntityId, owner: str = "site") -> list[Change]:
    return [Declare(one, {}, owner) for one in entities]


def desired(entities: Iterable[EntityId], **values: str) -> list[Change]:
    return [SetDesired(one, name, to, "site") for one in entities for name, to in values.items()]


def _rack() -> list[Change]:
    nodes = [Declare(node, {"rack": "1"}, "site") for node in RACK]
    powers = desired(RACK, power="on")
    return [*nodes, *powers, *declared(WEB), *desired([WEB], run="running")]


def _four() -> list[Change]:
    """Four nodes, the last of which is the site's to switch, and a service."""
    nodes = [node_id(f"n{number}") for number in range(1, 5)]
    return [*declared(*nodes, EntityId("service", "web", "n1")), *desired(nodes[3:], power="on")]


def _on() -> list[Change]:
    nodes = [node_id("n1"), node_id("n2")]
    web = declared(EntityId("service", "web", "n1"), owner="user:eve")
    return [*declared(*nodes), *web, *desired(nodes, power="on", agent="up")]


def _images() -> list[Change]:
    image, system = EntityId("image", "debian-a", None), EntityId("system", "compute", "n1")
    return [
        *declared(node_id("n1"), image, system),
        *desired([image], state="built", recipe="/srv/a"),
        *desired([system], image="debian-a"),
    ]


def _group() -> list[Change]:
    """A group of two replicas, one of which leads."""
    ledger, lease = EntityId("group", "ledger", None), EntityId("lease", "ledger.1", "n1")
    nodes = [node_id(f"n{number}") for number in range(1, 4)]
    return [
        *declared(*nodes, ledger),
        *desired([ledger], command="/srv/ledger"),
        *declared(lease, owner="controller:groups"),
        SetDesired(lease, "rank", 0, "controller:groups"),
    ]


def _systems() -> list[Change]:
    images = [EntityId("image", name, None) for name in ("a", "b")]
    systems = [EntityId("system", "compute", node) for node in ("n1", "n2")]
    nodes = [node_id("n1"), node_id("n2")]
    return [
        *declared(EntityId("module", "roll", None), *nodes, *images, *systems),
        *desired(images, state="built"),
        *desired(systems, image="a"),
    ]


def _twenty() -> list[Change]:
    nodes = [node_id(f"n{number}") for number in range(1, 21)]
    return [*declared(*nodes), *desired(nodes, power="on")]


def _disrupted(cluster: Serving) -> None:
    """Whatever is changed disrupts three nodes."""
    cluster.backend.disrupts = ["n1", "n2", "n3"]
    nodes, wants = 'nodes: {"n[1-20]": {}}', 'desired: {"n[1-20]": {power: off}}'
    Path("site.yaml").write_text(f"cluster: quick\n{nodes}\n{wants}\n")


def _remembered(cluster: Serving) -> None:
    cluster.do(
        cluster.backend.write,
        *(Declare(node, {"rack": "1"}, "site") for node in RACK),
        *desired(RACK, power="on"),
        *declared(WEB),
        author=Author("user:ada", "first light"),
    )
    port = SetDesired(WEB, "port", 80, "user:eve")
    cluster.do(cluster.backend.write, port, author=Author("user:eve"))


def _two_jobs(cluster: Serving) -> None:
    """Job 1, which n3 has, and job 2, which is larger than n3."""
    queue = cluster.backend.jobs.queue
    cluster.do(queue.submit, Submission(owner="user:admin", name="sum", spec=TRUE), NOW)
    cluster.do(ask_for_work, queue, "n3", Size(2, 512), WorkAsked("a", 1), NOW)
    _giants(cluster)


def _giants(cluster: Serving, count: str | None = None) -> None:
    spec, many = JobSpec(("true",), Size(64, 512)), None if count is None else int(count)
    giant = Submission(owner="user:eve", name="giant", spec=spec, count=many)
    cluster.do(cluster.backend.jobs.queue.submit, giant, NOW)


def _written_twice(cluster: Serving) -> None:
    """Nodes and a service are declared at 4, and switched on at 7; the third node is stuck."""
    author, web = Author("bob"), EntityId("service", "web", "rack1n2")
    cluster.do(cluster.backend.write, *declared(*RACK, web), author=author)
    cluster.do(cluster.backend.write, *desired(RACK, power="on"), author=author)
    stands = {"condition": Condition.STUCK, "why": "it refuses", "chain": CHAIN}
    cluster.do(cluster.backend.say, RACK[2], **stands)


def _nothing(_: Serving) -> None:
    pass


# What was written there first, and what happened then.
CLUSTERS: Final[dict[str, tuple[list[Change], Callable[[Serving], None]]]] = {
    "none": ([], _nothing),
    "rack": (_rack(), _nothing),
    "idle": (declared(*RACK, WEB), _nothing),
    "past": ([], _remembered),
    "twice": ([], _written_twice),
    "four": (_four(), _nothing),
    "on": (_on(), _nothing),
    "images": (_images(), _nothing),
    "systems": (_systems(), _nothing),
    "group": (_group(), _nothing),
    "twenty": (_twenty(), _disrupted),
    "jobs": ([], _two_jobs),
}


@contextmanager
def cluster_of(
    name: str, patched: pytest.MonkeyPatch, folder: Path, token: str = "write"
) -> Iterator[Serving]:
    """One of these, served, and this folder with a client file that names it."""
    changes, begun = CLUSTERS[name]
    with serving(*changes) as cluster:
        patched.chdir(folder)
        patched.syspath_prepend(folder)
        point_at(cluster.url, f"{token}-token", patched, folder)
        begun(cluster)
        yield cluster


def _say(cluster: Serving, entity: str, *parts: str) -> None:
    """Have an entity stand otherwise: NAME=VALUE..., `chain=chain` for the chain above."""
    given = dict(one.split("=", 1) for one in parts)
    said: dict[str, Any] = {
        name: int(value) if name.endswith("_ms") else value for name, value in given.items()
    }
    if "condition" in given:
        said["condition"] = Condition(given["condition"])
    if "chain" in given:
        said["chain"] = CHAIN if given["chain"] else []
    if "power" in given:
        seen = ObservedView(said.pop("power"), True, "read", "look", 1_000)
        said["observed"] = {"power": seen} if given["power"] else {}
    cluster.do(cluster.backend.say, parse_entity(entity), **said)


def _seen(cluster: Serving, entity: str, *parts: str) -> None:
    """Have an entity declared, and observed so: NAME=VALUE...; of a `note=…` its agent knows."""
    given = dict(one.split("=", 1) for one in parts)
    note, one = given.pop("note", None), parse_entity(entity)
    if one not in cluster.backend.store:
        cluster.do(cluster.backend.write, Declare(one, {}, "controller:groups"))
    seen = {name: ObservedView(to, True, "read", "look", 40) for name, to in given.items()}
    cluster.backend.extra[one] = {"observed": seen}
    noted = {name: msgspec.structs.replace(view, note=note) for name, view in seen.items()}
    view = cluster.backend.entity(one)
    cluster.backend.agents[one] = msgspec.structs.replace(view, observed=noted)


def stuck(cluster: Serving) -> None:
    why = "labnode.switch_on failed: the BMC refuses\x1b[31m"
    stands = {"condition": Condition.STUCK, "chain": CHAIN, "why": why, "since_ms": 12_000}
    cluster.do(cluster.backend.say, RACK[2], **stands, error="chassis interlock")


def _tried(cluster: Serving) -> None:
    tried = [TriedView("labnode.switch_on", 95_000, "the BMC\x1b[31m refuses")]
    cluster.do(cluster.backend.say, RACK[2], tried=tried)


def _explained(cluster: Serving) -> None:
    cluster.backend.reasons[RACK[2]] = Explained(
        cost=20,
        so_that=["so that power is on, as desired", None, "so that power is off, as desired"],
        runner_up=Alternative("without labnode.reset", 25, ["labnode.switch_on", "labnode.kill"]),
        cheaper=Alternative(
            "labnode.switch_off is excluded by busy=busy", 1, ["labnode.switch_off"]
        ),
    )


def _within_reach(cluster: Serving) -> None:
    many = [f"m.part{number}" for number in range(8)]
    offer = "module jobs would look at busy (jobs.look_busy): add it to the site's modules"
    nearest = Nearest({"power": "on", "busy": "free"}, 9, many)
    cluster.backend.reasons[RACK[2]] = Explained(nearest=nearest, offers=[offer])


def _agent(cluster: Serving) -> None:
    seen = cluster.backend.entity(RACK[2])
    cluster.backend.agents[RACK[2]] = msgspec.structs.replace(
        seen,
        condition=Condition.STUCK,
        why="service.start: refused",
        tried=[TriedView("service.start", 2_000, "refused")],
        again_in_ms=4_000,
    )


def _log(cluster: Serving, entity: str, text: str) -> None:
    written = text.encode("latin-1").decode("unicode_escape").encode("latin-1")
    cluster.backend.logs[parse_entity(entity)] = written


def _strange(cluster: Serving) -> None:
    mac = "52:54:00:00:00:03"
    cluster.backend.strange = [UnclaimedView(mac, "BIOS", None, 2, 1.0, 63.0)]


def _site(_: Serving, file: str, *changed: str) -> None:
    """A site file of the rack, with OLD=>NEW where it differs; what has no => stands at its end."""
    text = SITE
    for one in changed:
        old, arrow, new = one.partition("=>")
        text = text.replace(old, new) if arrow else f"{text}{one}\n"
    Path(file).write_text(text)


def _file(_: Serving, file: str, text: str) -> None:
    Path(file).write_bytes(text.encode("latin-1").decode("unicode_escape").encode("latin-1"))


def _happened(cluster: Serving) -> None:
    cluster.backend.happenings = [
        Happened(1003.0, "node:rack1n1", Sort.TRIED, "bmc.switch_on", "worked", "done"),
        Happened(1002.0, "node:rack1n1", Sort.SEEN, "power", "on", "bmc"),
        Happened(1001.0, "node:rack1n1", Sort.STANDS, None, "stuck", "jammed"),
        Happened(999.0, "", Sort.LOST, None, "3"),
        Happened(999.0, "", Sort.BEGUN),
    ]


def _troubled(cluster: Serving) -> None:
    """Yesterday rack1n1 was lost, and a step failed on it; rack1n2 has a job that failed today."""
    node, now_s = "node:rack1n1", wall_s()
    cluster.backend.happenings = [
        Happened(now_s - 80_000, node, Sort.SEEN, "agent", "up?", "sync"),
        Happened(now_s - 90_000, node, Sort.SEEN, "agent", "up", "sync"),
        Happened(now_s - 90_000, node, Sort.SEEN, "power", "on", "bmc"),
        Happened(now_s - 90_010, node, Sort.TRIED, "bmc.switch_on", "failed", "no answer"),
    ]
    queue, now = cluster.backend.jobs.queue, Moment(0, now_s)
    cluster.do(queue.submit, Submission(owner="user:admin", name="sum", spec=TRUE), now)
    cluster.do(ask_for_work, queue, "rack1n2", Size(2, 512), WorkAsked("a", 1), now)
    cluster.do(queue.end, queue.jobs[1], JobState.FAILED, now)


def _was(cluster: Serving, at_s: str, *entities: str) -> None:
    """How entities were at a time: each ENTITY, or ENTITY CONDITION WANTED SEEN WHY with `/`."""
    views = []
    for one in entities:
        entity, condition, wanted, seen, why, *_ = [*one.split("/"), "", "", "", ""]
        values = [{"power": value} if value else {} for value in (wanted, seen)]
        views.append(PastView(entity, {}, *values, condition or None, why or None))
    cluster.backend.pasts[int(at_s)] = views


def _inventories(cluster: Serving) -> None:
    gone = ImageFile("/etc/gone", FileSort.FILE, 0o644, 0, 0, 5, "aa")
    su = ImageFile("/bin/su", FileSort.FILE, 0o4755, 0, 0, 9, "bb")
    bad = ImageFile("/a\x1b[2Jb", FileSort.LINK, 0o777, 0, 0, 0, "su")
    changed = msgspec.structs.replace(su, mode=0o755, gid=4, content="cc", size_bytes=1_000_009)
    for image, files, packages in (
        ("debian-a", [gone, su], {"libc6": "2.36-9", "curl": "7"}),
        ("debian-b", [changed, bad], {"libc6": "2.36-10"}),
    ):
        found = Inventory(f"sha256:{image}", files, packages)
        cluster.backend.inventories[image] = msgspec.json.encode(found)


def _built(cluster: Serving, *images: str) -> None:
    for name in images:
        noted = ObservedView("built", True, "read", "image", 40, note=f"sha256:{name}, 1.0 MB")
        cluster.backend.extra[EntityId("image", name, None)] = {"observed": {"state": noted}}


def _set(name: str, of: Callable[..., object]) -> Callable[..., None]:
    return lambda cluster, *words: setattr(cluster.backend, name, of(*words))


HAPPENS: Final[dict[str, Callable[..., None]]] = {
    "say": _say,
    "seen": _seen,
    "stuck": stuck,
    "tried": _tried,
    "explained": _explained,
    "within-reach": _within_reach,
    "agent": _agent,
    "log": _log,
    "strange": _strange,
    "site": _site,
    "file": _file,
    "given": lambda _, *files: [shutil.copy(GIVEN / one, ".") for one in files],
    "happened": _happened,
    "troubled": _troubled,
    "was": _was,
    "inventories": _inventories,
    "built": _built,
    "giants": _giants,
    "mkdir": lambda _, folder: Path(folder).mkdir(),
    "wrong": lambda cluster, *texts: setattr(cluster.backend.tree, "wrong", [*texts]),
    "brake": _set("braked", lambda why, for_ms: BrakeView(why, int(for_ms))),
    "incarnation": lambda cluster, node, one: cluster.backend.incarnations.update({node: int(one)}),
    "disrupts": _set("disrupts", expand),
    "declare": lambda cluster, entity: cluster.do(
        cluster.backend.write, Declare(parse_entity(entity), {}, "site")
    ),
    "drop": lambda cluster, entity: cluster.do(cluster.backend.store.pop, parse_entity(entity)),
}


def _desired(cluster: Serving, *names: str) -> Iterable[str]:
    """What is desired of each, by whom it is declared."""
    for name in names:
        stored = cluster.backend.store.get(parse_entity(name))
        told = "nothing" if stored is None else f"of {stored.owner}"
        values = {} if stored is None else stored.desired
        yield " ".join([name, told, *(f"{key}={one.value!r}" for key, one in values.items())])


QUESTIONS: Final[dict[str, Callable[..., Iterable[str]]]] = {
    "desired": _desired,
    "files": lambda _: sorted(map(str, Path().iterdir())),
    "revision": lambda cluster: [cluster.backend.revision()],
    "asked": lambda cluster: map(str, cluster.backend.asked),
    "noted": lambda cluster: [f"{one.who}: {one.what}" for one in cluster.backend.noted],
    "overridden": lambda cluster: cluster.backend.overridden,
    "why": lambda cluster: [cluster.backend.history[-1][1].why],
}
