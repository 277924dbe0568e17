"""What of a site can never be is told once of all that it is about, where the site says it."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from haptera.model.answers.finding import Level, Rule
from haptera.model.deprecated import UNDECLARED_SETTINGS
from haptera.model.parts import (
    Change,
    Context,
    Look,
    Manifest,
    Requirement,
    Setting,
    SettingType,
    Step,
)
from haptera.rest.schemas import SiteFile
from haptera.runtime.processes.described import described
from haptera.site.lint.lint import lint_site
from haptera.site.model.site import load_site, parse_site

ROOT = Path(__file__).resolve().parents[2]
# Rule, what it is told of, and where: line and column.
Told = tuple[Rule, str, tuple[int, int] | None]


def told(text: str) -> list[Told]:
    site = parse_site([SiteFile("site.yaml", f"cluster: c\n{text}")], {})
    found = lint_site(site)
    return [
        (one.finding.rule, one.finding.place, one.place and (one.place.line, one.place.column))
        for one in found
    ]


NODES = """nodes:
  n[1-4]: {platform: labnode}
  n[5-6]: {platform: other}
services:
  web: {command: sleep 1}
  db: {command: sleep 1}
desired:
"""


BOOTS = """modules:
  jobs: {}
  minos: {}
  ipmi: {settings: {user: a, password: {secret: bmc}}}
  netboot: {settings: {interface: eth1, address: 10.0.0.1/24}}
nodes:
  n1: {platform: ipmi, boot_from: network, address: 10.0.0.5, mac: "52:54:00:00:00:01"}
desired:
  n1: {power: on, agent: up, minos: new}
"""


@pytest.mark.parametrize("site", sorted((ROOT / "examples").glob("*/site.yaml")), ids=str)
def test_nothing_is_found_in_the_examples(site: Path) -> None:
    constants = {"x": "1", "python": "python", "site": str(site.parent)}
    read = load_site(site, constants)
    if any(shutil.which(one.command[0]) is None for one in read.own if one.command):
        pytest.skip(f"{site} names a command that is not here")
    found = lint_site(read, described(read.own))
    # A note on a module (a lamp never hangs) is at no place of the site's.
    assert [one for one in found if one.place or one.finding.level is not Level.NOTE] == []


def test_whether_boot_files_are_there_is_not_the_sites_to_mend() -> None:
    assert [one for one in told(BOOTS) if one[0] is not Rule.UNREACHABLE_VALUE] == []


def test_entities_that_are_alike_are_told_of_once_and_others_apart() -> None:
    assert told(
        NODES
        + """
  n[1-2]: {power: off, agent: up}
  n[3-4]: {agent: up, power: off}
  n[5-6]: {power: on}
"""
    ) == [
        (Rule.UNKNOWABLE_GOAL, "node:n[1-4]", (10, 24)),
        (Rule.UNKNOWABLE_GOAL, "node:n[5-6]", (12, 12)),
    ]


def test_services_of_the_same_name_are_told_of_by_what_their_nodes_are() -> None:
    assert told(
        NODES
        + """
  n[1-2]: {power: off}
  n[3-4]: {power: on}
  web@n[1-6]: {run: running}
  db@n[1]: {run: stopped}
"""
    ) == [
        (Rule.NODE_FORBIDS, "service:db@n1", (13, 13)),
        (Rule.NODE_FORBIDS, "service:web@n[1-2]", (12, 16)),
        # Nothing of web@n[5-6]: a machine of no platform can join while it runs.
    ]


def test_a_module_that_is_lacking_is_named_and_one_that_would_not_help_is_not() -> None:
    lacking = "modules: [labnode]\n" + NODES
    assert told(lacking + "  n1: {busy: free}\n  web@n[2-3]: {run: running}\n") == [
        # With the module jobs it could be known, but still no step would lead there.
        (Rule.NO_WAY, "node:n1", (10, 8)),
        (Rule.NO_MODULE, "service:web@n[2-3]", (11, 16)),
    ]


def test_what_is_not_desired_and_rules_are_not_judged() -> None:
    rules = 'policies:\n  p: {for: "n[1-6]", attempts: 3}\n'
    assert told(rules + NODES.removesuffix("desired:\n")) == []


def test_data_that_are_desired_are_to_be_in_force() -> None:
    """With run stopped, `applied` cannot be known: then it is not asked for."""
    assert told(NODES + "  web@n1: {run: running}\n  db@n1: {run: stopped}\n") == []


def test_a_module_as_an_entity_is_judged_by_what_haptera_itself_does_with_it() -> None:
    assert told(NODES + "  module:jobs@n1: {run: stopped}\n  n1: {power: off}\n") == [
        (Rule.NODE_FORBIDS, "module:jobs@n1", (9, 20)),
    ]


def test_modules_of_a_sites_own_are_judged_with_it_and_if_refused_alone() -> None:
    up, off = Requirement("agent", ("up",)), Requirement("power", ("off",))
    busy = Look("mine", "look", "node", "busy", ("free", "busy"), (up,))
    drain = Step("mine", "drain", "node", (Change("busy", ("*",), "free"),))
    site = parse_site([SiteFile("site.yaml", f"cluster: c\n{NODES}  n5: {{power: on}}\n")], {})
    site = replace(site, modules=("labnode",))

    def found(*parts: Look | Step) -> list[tuple[Rule, str]]:
        looks = tuple(one for one in parts if isinstance(one, Look))
        steps = tuple(one for one in parts if isinstance(one, Step))
        own = Manifest("mine", "1", Context.SELF, looks, steps)
        return [(one.finding.rule, one.finding.place) for one in lint_site(site, [own])]

    goal = (Rule.UNKNOWABLE_GOAL, "node:n5")
    assert found(busy) == [goal]
    lost, one_way = (Rule.MAY_BE_LOST, "mine.drain"), (Rule.ONE_WAY, "node.busy")
    assert found(busy, drain) == [goal, lost, one_way]
    assert found(replace(busy, requires=(up, off))) == [(Rule.NEVER_OPENS, "mine.look")]


@pytest.mark.parametrize(
    ("settings", "rule", "text"),
    [
        ("{key: {secret: k}, port: 1.5}", "wrong-setting", "the setting 'port' of o is no integer"),
        (
            "{key: {secret: k}, port: true}",
            "wrong-setting",
            "the setting 'port' of o is no integer",
        ),
        ("{key: {secret: k}, prot: 1}", "wrong-setting", "o has no setting 'prot'"),
        ("{port: 1}", "wrong-setting", "o needs the setting 'key'"),
        ("{key: {secret: k}, port: {secret: k}}", "wrong-setting", "the setting 'port' of o is no"),
        (
            "{key: open}",
            "open-secret",
            "the setting 'key' of o is a secret, given in clear text",
        ),
        ("{key: {secret: k}, port: 1, any: [1, {a: b}]}", None, None),
        (
            "{key: {secret: k}, wrapper_command: nice}",
            "undeclared-code",
            "scope write may change the setting 'wrapper_command' of o",
        ),
        ("{key: {secret: k}, program: /bin/true}", None, None),
    ],
)
def test_settings_are_held_against_what_the_module_declares(settings, rule, text):
    declared = (
        Setting("key", SettingType.TEXT, required=True, secret=True),
        Setting("port", SettingType.INTEGER),
        Setting("any"),
        Setting("wrapper_command", SettingType.TEXT),
        Setting("program", SettingType.TEXT, code=("",)),
    )
    own = Manifest("o", "1", Context.SELF, (), (), settings=declared)
    site = parse_site(
        [
            SiteFile(
                "site.yaml",
                "cluster: c\nnodes: {'n[1-2]': }\nmodules:\n"
                f"  o: {{place: a:b, context: self, settings: {settings}}}\n",
            )
        ],
        {},
    )
    found = lint_site(site, [own])

    # Both nodes have them: it is told once.
    assert [one.finding.rule for one in found] == ([] if rule is None else [rule])
    if rule is not None:
        assert found[0].finding.text.startswith(text)
        assert (found[0].place.line, found[0].finding.place) == (4, "module:o@n1")


@pytest.mark.parametrize(
    ("module", "settings", "text"),
    [
        ("netboot", '{interface: eth1, address: "fd00::1/64"}', "address and router are of IPv4"),
        ("netboot", "{interface: a, address: 10.0.0.1/24, router: x}", "address and router are of"),
        ("image", "{builds_at_once: 0}", "Expected `int` >= 1"),
        ("ipmi", "{user: u, password: {secret: p}, interface: lan9}", "Invalid enum value 'lan9'"),
        ("ipmi", "{user: u, password: {secret: p}}", None),
        ("redfish", "{user: u, password: {secret: p}, trust: verified}", None),
    ],
)
def test_settings_that_a_bundled_module_refuses_are_told_in_its_words(module, settings, text):
    site = f"cluster: c\nnodes: {{n1: }}\nmodules:\n  {module}: {{settings: {settings}}}\n"
    found = lint_site(parse_site([SiteFile("site.yaml", site)], {}))
    told = [one.finding.text for one in found if one.finding.rule is Rule.WRONG_SETTING]
    assert len(told) == (0 if text is None else 1), told
    assert text is None or text in told[0]


def test_settings_that_nobody_declared_are_told_with_what_to_do():
    text = "cluster: c\nnodes: {n1: }\nmodules:\n  service: {settings: {grace_s: 5}}\n"
    (one,) = lint_site(parse_site([SiteFile("site.yaml", text)], {}))

    assert one.finding.rule is Rule.UNDECLARED_SETTINGS
    assert one.finding.text == f"service {UNDECLARED_SETTINGS}"
