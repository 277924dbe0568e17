"""The page on site files: its files are read, its tables compared with the kinds."""

import re
from pathlib import Path

import pytest

from haptera.cli.main import REFUSED, run
from haptera.core.sync.presence import HEAR
from haptera.kinds import KINDS
from haptera.kinds.rules.policy import DURATION_MS_MAX
from haptera.lab.bmc import FLAP_S
from haptera.lab.layout import BOOT_MS_MAX, DELAY_MS_MAX
from haptera.lab.orders import FAULT_DELAY_MS_MAX, GivenFaults, Lie
from haptera.lab.settings import LabSettings, lab_nodes
from haptera.model.declared.schema import Applied, Kind
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import InputError
from haptera.model.walltime import parse_duration_ms
from haptera.modules import BUNDLED, load
from haptera.rest.schemas import SiteFile
from haptera.site import SiteEntity, load_site, parse_site
from haptera.site.model.modules import MODULES
from haptera.site.model.rules import BUDGETS, POLICIES, RuleForm
from haptera.site.syntax.sources import SUFFIXES
from haptera.site.syntax.template import fill

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/site-file.md").read_text(encoding="utf-8")
CONSTANTS = {"python": "/usr/bin/python3", "site": "/srv"}
WORD = re.compile(r"`([^`]+)`")


def test_the_example_is_read_and_says_what_the_page_says_of_it() -> None:
    site = parse_site([SiteFile("site.yaml", block("yaml site"))], CONSTANTS)
    wanted = {one.entity: one for one in site.entities}

    assert wanted[node_id("rack2n01")].attributes == {
        "platform": "labnode",
        "address": "127.0.1.4",
        "bmc": "127.0.2.4:4280",
        "rack": "rack2",
    }
    assert "rack" not in wanted[node_id("login")].attributes
    ports = {str(one): wanted[one].desired["port"] for one in wanted if one.kind == "service"}
    assert ports == {"service:web@login": 8081} | {
        f"service:web@rack{rack}n{n}": 8080 for rack in (1, 2) for n in ("01", "02")
    }
    command = wanted[EntityId("service", "web", "rack1n01")].desired["command"]
    assert command == '"/usr/bin/python3" -m http.server --bind 127.0.1.2 8080'


def test_the_layers_of_the_example_are_laid_as_the_page_says() -> None:
    found = parse_site([SiteFile("site.yaml", block("yaml layers"))], CONSTANTS).entities
    wanted = {str(one.entity): one for one in found}
    worker = {"platform": "labnode", "fault_group": "pdu1"}

    assert wanted["node:rack2n01"].attributes == worker | {
        "rack": "rack2", "bmc": "10.1.2.101:443", "groups": "gpu, compute",
    }  # fmt: skip
    assert wanted["node:login"].attributes == {"platform": "labnode", "rack": "office"}
    powers = {name: one.desired.get("power") for name, one in wanted.items() if "node:" in name}
    assert powers == {"node:login": "on"} | {
        f"node:rack{rack}n0{n}": "on" if rack == 1 else "off" for rack in (1, 2) for n in (1, 2)
    }
    assert wanted["service:web@rack1n02"].desired == {
        "run": "running", "port": 8002, "command": "serve rack1n02 10.1.1.102:443",
    }  # fmt: skip


def test_the_forms_of_holes_are_as_the_page_has_them() -> None:
    own = {"n": "02"}
    rows = re.findall(r"^\| `(\{.*\})` \| `(\w+)` \|$", section("Templates"), re.MULTILINE)

    assert len(rows) == 4
    assert [fill(hole, own.__getitem__) for hole, _ in rows] == [text for _, text in rows]


def test_the_lab_takes_the_example() -> None:
    site = parse_site([SiteFile("site.yaml", block("yaml site"))], CONSTANTS)
    nodes = {one.entity.name: one.attributes for one in site.entities if one.entity.kind == "node"}

    refusing = [one.name for one in lab_nodes(nodes, site.lab) if one.refuse is not None]
    assert refusing == ["rack1n02"]


def test_the_errors_are_printed_as_the_page_has_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("site.yaml").write_text(block("yaml wrong"), encoding="utf-8")

    assert run(["check", "site.yaml"]) == REFUSED
    assert capsys.readouterr().err == block("text output")


def test_the_site_of_several_files_is_read_from_its_first(tmp_path: Path) -> None:
    for title, name in re.findall(r"^```((?:ya|to)ml (site/.*))$", PAGE, re.MULTILINE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(block(title), encoding="utf-8")

    site = load_site(tmp_path / "site/cluster.yaml", {})
    one = {"platform": "labnode"}, {"power": "on"}
    assert site.entities == tuple(SiteEntity(node_id(f"n{n}"), *one) for n in (1, 2, 3))
    assert (site.cluster, site.modules) == ("parts", ("labnode",))


@pytest.mark.parametrize(
    ("title", "kind"),
    [("Nodes", "node"), ("Services", "service"), ("Images", "image"), ("Systems", "system")],
)
def test_the_tables_have_all_that_a_kind_has_and_no_more(title: str, kind: str) -> None:
    rows = {WORD.findall(name)[0]: (what, values) for name, what, values in table(title)}
    variables = {
        name: set(WORD.findall(values))
        for name, (what, values) in rows.items()
        if what == "variable"
    }
    others = {
        name: (what, values.partition(":")[0])
        for name, (what, values) in rows.items()
        if what != "variable"
    }

    assert variables == desirable(KINDS[kind])
    assert others == data(KINDS[kind])


def test_the_bundled_modules_lead_where_the_page_says_and_nowhere_else() -> None:
    led = {
        f"{step.kind}.{change.variable}={change.target}"
        for name in BUNDLED
        for step in load(name).manifest().steps
        for change in step.changes
    }

    assert led == {
        *("node.power=on", "node.power=off", "node.agent=up"),
        *("node.work=drained", "node.work=held", "node.work=open"),
        *("node.netboot=closed", "node.netboot=offered", "node.booted=current"),
        *(f"node.power_profile={one}" for one in ("performance", "balanced", "powersave")),
        *("service.run=running", "service.run=stopped", "service.applied=current"),
        *("image.state=built", "image.state=absent", "image.applied=current"),
        *("system.run=running", "system.run=stopped"),
        *("system.applied=current", "system.staged=current"),
        *("replica.run=running", "replica.run=stopped", "replica.applied=current"),
        *("lease.state=held", "lease.state=spent"),
        *("instance.exist=present", "instance.exist=absent"),
    }


def test_the_keys_are_those_of_the_code() -> None:
    keys = [WORD.findall(row[0])[0] for row in table("Keys")]
    with pytest.raises(InputError) as caught:
        parse_site([SiteFile("site.yaml", "cluster: c\nother: 1\n")], {})

    assert caught.value.do == f"there are {', '.join(sorted(keys))}"
    assert f"`[{', '.join(MODULES)}]`" in section("Keys")
    assert [*SUFFIXES] == re.findall(r"`(\.\w+)`", section("Several files"))


@pytest.mark.parametrize(("title", "form"), [("Policies", POLICIES), ("Budgets", BUDGETS)])
def test_the_tables_of_rules_have_all_their_keys(title: str, form: RuleForm) -> None:
    rows = {WORD.findall(name)[0]: says for name, says, _ in table(title)}

    assert list(rows) == list(form.keys)
    assert [name for name, says in rows.items() if "must be given" in says] == list(form.needed)


def test_the_rules_of_the_example_say_what_the_page_says_of_them() -> None:
    site = parse_site([SiteFile("site.yaml", block("yaml site"))], CONSTANTS)
    rules = {str(one.entity): one.desired for one in site.entities if one.entity.node is None}

    assert rules == {
        "policy:site-1": {
            "of": "node:rack2*", "parts": "labnode", "attempts": 3, "cool_down_ms": 600_000,
            "rank": 1,
        },
        "policy:site-2": {"of": "login", "parts": "sync.hear", "within_ms": 300_000, "rank": 2},
        "budget:slowly": {"of": "rack*", "per": "group", "at_once": 1},
    }  # fmt: skip
    assert HEAR.path == "sync.hear"
    assert parse_duration_ms("7d") == DURATION_MS_MAX


def test_the_labs_settings_are_all_there_with_their_values() -> None:
    values = {WORD.findall(name)[0]: values for name, _, values in table("The lab")}
    plain = LabSettings()

    assert tuple(values) == LabSettings.__struct_fields__
    assert values["delay_ms"] == f"0 to {DELAY_MS_MAX}; {plain.delay_ms}"
    assert values["delay_rack_ms"] == f"from 0; {plain.delay_rack_ms}"
    assert f"boots {BOOT_MS_MAX:,} ms later" in section("The lab")
    ways = re.findall(r"^- `(\w+)(?:: (\w+))?`", section("The lab"), re.MULTILINE)
    assert list(dict.fromkeys(name for name, _ in ways)) == [*GivenFaults.__struct_fields__]
    assert [value for name, value in ways if name == "lies"] == list(Lie)
    assert f"`delay_ms`, up to {FAULT_DELAY_MS_MAX}, " in section("The lab")
    assert FLAP_S == 3


def desirable(kind: Kind) -> dict[str, set[str]]:
    return {
        one.name: {str(value) for value in one.values if value is not one.unknown}
        for one in kind.variables
        if one.values is not Applied
    }


def data(kind: Kind) -> dict[str, tuple[str, str]]:
    found = {
        one.name: ("attribute", f"text, {one.size_bytes_max} bytes") for one in kind.attributes
    }
    for plain in kind.plain:
        text = f"text, {plain.size_bytes_max} bytes" if plain.type is str else "whole number"
        found[plain.name] = ("plain data", text)
    return found


def block(title: str) -> str:
    """The one fenced block that begins so."""
    (text,) = re.findall(rf"^```{re.escape(title)}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert isinstance(text, str)
    return text


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def table(title: str) -> list[list[str]]:
    """The cells of each row below the head of the section's table."""
    rows = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]
