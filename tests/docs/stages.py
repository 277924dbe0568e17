"""Where pages' sessions are typed: files at hand, a real parent, or one that tells what is made up.

A stage gives the shell its variables. States that take minutes to come about in a cluster (a node
that is silent, a service that keeps dying) are told by a fake backend behind the real API.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from haptera.keeping.gate import JobsGate, gate_path
from haptera.kinds.inventory import Inventory
from haptera.model.answers.explained import Alternative, Explained, Nearest
from haptera.model.answers.views import Condition, LinkView, ObservedView, TriedView
from haptera.model.changes import Author, Change, Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.rest.unclaimed import UnclaimedView
from tests.api.serving import Serving, serving
from tests.cli.rig import SITE, served
from tests.docs.pages import ROOT, files
from tests.network import NETWORK, ipv6_loopback

Stage = Callable[[Path], AbstractContextManager[Mapping[str, str]]]

ADDRESS = f"{NETWORK}.67.1"
NODE = node_id("n01")
RACK = [node_id(f"rack1n{number}") for number in range(1, 5)]
WEB = EntityId("service", "web", "n01")


def desk(page: str | None = None, **texts: str) -> Stage:
    """A folder with the files that the page shows, others, and what a checkout has."""

    @contextmanager
    def stage(folder: Path) -> Iterator[Mapping[str, str]]:
        for name, text in {**(files(page) if page else {}), **texts}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        yield {}

    return stage


def parent(stage: Stage, *options: str, site: str = "site.yaml") -> Stage:
    """A real parent of the site that lies there, with no way to its nodes."""

    @contextmanager
    def with_parent(folder: Path) -> Iterator[Mapping[str, str]]:
        with (
            stage(folder) as variables,
            served(folder, "--site", folder / site, *options, address=ADDRESS),
        ):
            yield variables

    return with_parent


def over_tls(stage: Stage) -> Stage:
    """At an address beyond IPv4 loopback, where the API speaks TLS."""

    @contextmanager
    def there(folder: Path) -> Iterator[Mapping[str, str]]:
        with ipv6_loopback(), parent(stage, "--api", "::1")(folder) as variables:
            yield variables

    return there


def told(
    tell: Callable[[Serving], None],
    *changes: Change,
    token: str = "write-token",
    place: str = "client.json",
) -> Stage:
    """An API that tells made-up state: these changes, and what `tell` adds to them.

    The client file is in this place of the folder, also where pages name the parent's socket.
    """

    @contextmanager
    def stage(folder: Path) -> Iterator[Mapping[str, str]]:
        with serving(*changes) as one:
            one.do(tell, one)
            client = folder / place
            client.parent.mkdir(parents=True, exist_ok=True)
            client.write_text(json.dumps({"url": one.url, "token": token}))
            client.chmod(0o600)
            yield {"HAPTERA_CLIENT": str(client)}

    return stage


@contextmanager
def at_closed_gate(folder: Path) -> Iterator[Mapping[str, str]]:
    gate = JobsGate(folder)
    gate.release()
    gate.hold()
    yield {"HAPTERA_JOBS": str(gate_path(folder))}


@contextmanager
def at_open_gate(folder: Path) -> Iterator[Mapping[str, str]]:
    JobsGate(folder).release()
    yield {"HAPTERA_JOBS": str(gate_path(folder))}


def seen(value: str, age_ms: int, by: str = "haptera", *, known: bool = True) -> ObservedView:
    return ObservedView(value, known, "read", by, age_ms)


def a_stranger(mac: str) -> Callable[[Serving], None]:
    """A machine with this network card has asked for an address."""

    def tell(one: Serving) -> None:
        one.backend.strange = [UnclaimedView(mac, "BIOS", None, 2, 1.0, 63.0)]

    return tell


def two_writes(one: Serving) -> None:
    rack = [
        *(Declare(node, {"rack": "1"}, "site") for node in RACK[:3]),
        *(SetDesired(node, "power", "on", "site") for node in RACK[:3]),
        Declare(EntityId("service", "web", "rack1n1"), {}, "site"),
    ]
    one.backend.write(*rack, author=Author("user:ada", "first light"))
    port = SetDesired(EntityId("service", "web", "rack1n1"), "port", 80, "user:eve")
    one.backend.write(port, author=Author("user:eve"))


def two_modules(one: Serving) -> None:
    service = EntityId("module", "service", "n01")
    for module, since_ms in ((EntityId("module", "labnode", None), 180_000), (service, 120_000)):
        one.backend.write(Declare(module, {}, "site"))
        serves = {"applied": seen("current", 1_000), "run": seen("running", 1_000)}
        one.backend.say(module, condition=Condition.CONVERGED, since_ms=since_ms, observed=serves)
    one.backend.logs[service] = b"took n01 in\n"


def two_images(one: Serving) -> None:
    for name in ("debian-a", "debian-b"):
        one.backend.write(Declare(EntityId("image", name, None), {}, "site"))
        found = Inventory(f"sha256:{name}", [], {"libc6": "2.36-9"})
        one.backend.inventories[name] = msgspec.json.encode(found)


def one_roll(one: Serving) -> None:
    images = [EntityId("image", name, None) for name in ("debian-a", "debian-b")]
    systems = [EntityId("system", "compute", node.name) for node in RACK[:2]]
    one.backend.write(
        *(Declare(node, {}, "site") for node in RACK[:2]),
        *(Declare(image, {}, "site") for image in images),
        *(SetDesired(image, "state", "built", "site") for image in images),
        *(Declare(system, {}, "site") for system in systems),
        *(SetDesired(system, "image", "debian-a", "site") for system in systems),
        Declare(EntityId("module", "roll", None), {}, "haptera"),
    )


def one_group(one: Serving) -> None:
    ledger = EntityId("group", "ledger", None)
    one.backend.write(
        Declare(ledger, {}, "site"), SetDesired(ledger, "command", "/srv/ledger", "site")
    )


def four_nodes(one: Serving) -> None:
    webs = [EntityId("service", "web", node.name) for node in RACK[:2]]
    one.backend.write(
        *(Declare(node, {"groups": "gpu"} if node in RACK[1:] else {}, "site") for node in RACK),
        SetDesired(RACK[1], "power", "on", "site"),
        *(Declare(web, {}, "site") for web in webs),
    )
    for node in (RACK[0], RACK[3]):
        one.backend.say(node, observed={"power": seen("on", 500)})
    one.backend.say(RACK[1], observed={"power": seen("off", 500)}, condition=Condition.STUCK)
    silent = {"power": seen("on", 120_000, known=False)}
    one.backend.say(RACK[2], observed=silent, condition=Condition.WAITING)
    remembered = {"run": seen("running", 120_000, known=False)}
    one.backend.say(webs[1], observed=remembered, condition=Condition.WAITING)


START = LinkView("service.start", "brings run to running", "self")
DECLARED = (
    Declare(NODE, {}, "site"),
    Declare(WEB, {}, "site"),
    SetDesired(WEB, "run", "running", "site"),
)
SILENT = "the agent of n01 did not answer within 2 s"


def keeps_dying(one: Serving) -> None:
    ended = "returned, but run is failed: it ended with status 3"
    stuck: dict[str, Any] = {
        "condition": Condition.STUCK,
        "since_ms": 8_000,
        "why": f"service.start: {ended}",
        "observed": {"run": seen("failed", 2_000, "service")},
        "chain": [START],
        "unblock": "the agent of n01, by service.start",
    }
    one.backend.say(WEB, **stuck, told_by="n01")
    one.backend.agents[WEB] = msgspec.structs.replace(
        one.backend.entity(WEB),
        told_by=None,
        tried=[TriedView("service.start", 8_000, ended)],
        again_in_ms=4_000,
    )


def waits(one: Serving) -> None:
    one.backend.say(
        WEB,
        condition=Condition.WAITING,
        since_ms=3_000,
        why="waits for node.agent=up",
        chain=[START],
        tried=[TriedView("labnode.switch_on", 61_000, "no answer within 2 s")],
    )
    one.backend.unasked = SILENT


def silent_together(one: Serving) -> None:
    for number, node in enumerate(RACK[:3], 1):
        why = f"labnode.switch_off waits: the agent of {node.name} is silent: no-permit"
        one.backend.write(Declare(node, {}, "site"))
        one.backend.say(node, condition=Condition.WAITING, since_ms=50_000 * number, why=why)


def busy(one: Serving) -> None:
    excluded = "labnode.switch_off is excluded by busy=busy"
    refused = "labnode.force_off waits: n01 does not permit it: 2 jobs run"
    one.backend.say(
        NODE,
        condition=Condition.WAITING,
        since_ms=3_000,
        why=f"{excluded}; instead {refused}",
        chain=[LinkView("labnode.force_off", "brings power to off", "parent", disruptive=True)],
    )
    one.backend.unasked = SILENT
    one.backend.reasons[NODE] = Explained(
        cost=20,
        so_that=["so that power is off, as desired"],
        no_other=True,
        cheaper=Alternative(excluded, 1, ["labnode.switch_off"]),
    )


def no_chain(one: Serving) -> None:
    why = "nothing leads to busy=free"
    one.backend.say(NODE, condition=Condition.STUCK, since_ms=42_000, why=why)
    one.backend.unasked = SILENT
    offer = "module jobs would look at busy (jobs.look_busy): add it to the site's modules"
    one.backend.reasons[NODE] = Explained(
        nearest=Nearest({"power": "off"}, 1, ["labnode.switch_off"]), offers=[offer]
    )


# What a checkout has for pytest.
CHECKOUT = {"pyproject.toml": (ROOT / "pyproject.toml").read_text(encoding="utf-8")}
OUTLET = (ROOT / "examples/first_module/outlet.py").read_text(encoding="utf-8")
PROBLEM = files("docs/reference/graph.md")["problem.json"]
HALL = """\
cluster: hall
modules: [labnode, service]
nodes: {"rack1n[01-16]": {platform: labnode, bmc: "127.99.67.9:{n}", address: 127.99.67.8}}
"""


def hall(nodes: str, power: str) -> str:
    return f'{HALL}desired: {{"{nodes}": {{power: {power}}}}}\n'


HALLS = {
    "site.yaml": HALL,
    "none.yaml": "".join(HALL.splitlines(keepends=True)[:2]),
    "on.yaml": hall("rack1n[01-16]", "on"),
    "off.yaml": hall("rack1n[01-16]", "off"),
    "one.yaml": (ONE_ON := hall("rack1n03", "on")),
}
ONE_NODE = SITE.replace("n[1-2]", "n01")
A_RACK = SITE.replace("n[1-2]", "rack1n[1-3]")

UP = """\
cluster: small
modules: [labnode]
nodes: {n1: {platform: labnode}}
desired: {n1: {power: on, agent: up}}
"""

PLATFORM = ("site.yaml", "recorded.yaml")
# Of each session, by its page and the name of its fences.
STAGES: dict[str, Stage] = {
    "CONTRIBUTING.md": desk(**CHECKOUT),
    "docs/explain/rehearsals.md": parent(desk(**HALLS), site="none.yaml"),
    "docs/reference/cli.md": desk(),
    "docs/reference/declared.md": desk(
        **{name: (ROOT / "examples/platform" / name).read_text() for name in PLATFORM}
    ),
    "docs/reference/freezes.md": parent(desk(**{"site.yaml": A_RACK})),
    "docs/reference/graph.md": parent(desk("docs/reference/graph.md", **{"site.yaml": ONE_NODE})),
    "docs/reference/graph.md picture": desk("docs/reference/graph.md"),
    "docs/reference/graph.md json": desk(),
    "docs/reference/groups.md": parent(desk("docs/reference/groups.md")),
    "docs/reference/health.md": desk("docs/reference/health.md"),
    "docs/reference/history.md": told(two_writes),
    "docs/reference/history.md more": parent(desk(**{"site.yaml": A_RACK})),
    "docs/reference/images.md": told(two_images),
    "docs/reference/images.md import": told(two_images),
    "docs/reference/import.md": desk("docs/reference/import.md"),
    "docs/reference/jobs.md": at_open_gate,
    "docs/reference/jobs.md closed": at_closed_gate,
    "docs/reference/lint.md": desk(
        **{"outlet.py": OUTLET, "site.yaml": ONE_ON, "site/nodes.yaml": ONE_ON}
    ),
    "docs/reference/module-check.md": desk(),
    "docs/reference/modules.md": told(two_modules),
    "docs/reference/modules.md parent": parent(desk(**{"site.yaml": SITE, "strip.key": "hunter2"})),
    "docs/reference/netboot.md": told(
        a_stranger("52:54:00:00:00:29"), Declare(node_id("n41"), {}, "site"), token="admin-token"
    ),
    "docs/reference/plans.md": parent(desk(**HALLS), "--blast-radius", "10"),
    "docs/reference/problem.md": desk(
        **{"problem.json": PROBLEM, "problems.jsonl": PROBLEM.replace("\n", "") + "\n"}
    ),
    "docs/reference/rest.md": parent(desk(**{"site.yaml": SITE})),
    "docs/reference/rest.md tls": over_tls(desk(**{"site.yaml": SITE})),
    "docs/reference/rolls.md": told(one_roll),
    "docs/reference/selectors.md": told(four_nodes),
    "docs/reference/site-file.md": parent(desk("docs/reference/site-file.md"), site="site"),
    "docs/reference/site-file.md contradicts": parent(desk(**{"site.yaml": UP})),
    "docs/reference/trials.md": told(one_group),
    "docs/reference/why.md together": told(silent_together),
    "docs/reference/why.md why": told(keeps_dying, *DECLARED),
    "docs/reference/why.md busy": told(busy, *DECLARED),
    "docs/reference/why.md none": told(no_chain, *DECLARED),
    "docs/reference/why.md chain": told(waits, *DECLARED),
    "docs/tutorial/first-controller.md": desk(**CHECKOUT),
    "docs/tutorial/first-module.md strip": desk(),
    "docs/tutorial/first-module.md": desk(**CHECKOUT),
    "docs/tutorial/groups.md": desk(),
    "docs/tutorial/lamp-in-perl.md": desk(),
    "docs/tutorial/queue.md": desk(),
    "docs/tutorial/rack.md": told(
        a_stranger("52:54:00:00:01:03"),
        *(Declare(node, {"rack": "rack1"}, "site") for node in RACK[:3]),
        token="admin-token",
        place=".haptera/demos/rack/.haptera/api.sock",
    ),
}
