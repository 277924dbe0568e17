"""The site file: what it says, and that everything wrong with it is told with its place."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError, InputError
from haptera.rest.schemas import SiteFile
from haptera.site import SiteEntity, load_site, parse_site
from haptera.site.syntax.tree import DEPTH_MAX, ERRORS_MAX
from tests.kinds.listed import DESIRABLE

GOOD = """\
cluster: quick
nodes:
  rack[1-2]n[01-02]:
    platform: lab
    rack: "{1}"
    address: 127.{x}.{1}.{2}
    bmc: http://{address}:4280
  login: {platform: ipmi}
services:
  web:
    command: "{python} serve.py --name {name} '{{}}' {n:d}"
    port: 8080
desired:
  rack[1-2]n[01-02]: {power: on, agent: up}
  web@rack1n[01-02]: {run: running}
  service:web@rack2n02: {run: stopped, port: "90{2}"}
modules: [labnode]
lab:
  refuse: {"rack2n[01-02]": on, "@*!rack1*!login": "no"}
  bmc: {rack1n01: {silent: true, delay_ms: 5}}
  delay_ms: 250
"""
CONSTANTS = {"x": "93", "python": "python3"}


def parse(text):
    return parse_site([SiteFile("site.yaml", text)], CONSTANTS)


def errors_of(text):
    with pytest.raises(HapteraError) as raised:
        parse(text)
    errors = raised.value.errors if isinstance(raised.value, InputError) else (raised.value,)
    assert all(error.what and error.where and error.do for error in errors)
    return [(error.where.removeprefix("site.yaml:"), error.what) for error in errors]


def test_what_was_read_is_in_no_cycle():
    """A parent freezes what is old: a large site in a cycle would be kept for long."""
    parse(GOOD)
    gc.collect()
    gc.disable()
    try:
        parse(GOOD)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_site_file_says_which_entities_there_are_and_what_they_should_be():
    site = parse(GOOD)
    by_id = {one.entity: one for one in site.entities}
    assert sorted(map(str, by_id)) == [
        "node:login",
        "node:rack1n01",
        "node:rack1n02",
        "node:rack2n01",
        "node:rack2n02",
        "service:web@rack1n01",
        "service:web@rack1n02",
        "service:web@rack2n02",
    ]
    assert by_id[node_id("rack2n01")] == SiteEntity(
        node_id("rack2n01"),
        {
            "platform": "lab",
            "rack": "2",
            "address": "127.93.2.01",
            "bmc": "http://127.93.2.01:4280",
        },
        {"power": "on", "agent": "up"},
    )
    assert by_id[node_id("login")] == SiteEntity(node_id("login"), {"platform": "ipmi"}, {})
    web = EntityId("service", "web", "rack1n02")
    assert by_id[web].desired == {
        "run": "running",
        "command": "python3 serve.py --name rack1n02 '{}' 2",
        "port": 8080,
    }


def test_what_is_desired_of_one_service_outranks_its_data():
    web = EntityId("service", "web", "rack2n02")
    desired = {one.entity: one.desired for one in parse(GOOD).entities}[web]
    assert (desired["run"], desired["port"]) == ("stopped", 9002)


def test_the_lab_gets_its_part_as_data_with_nodes_by_name_and_on_stays_a_text():
    assert parse(GOOD.replace('"no"', "on")).lab == {
        "refuse": {"rack2n[01-02]": "on"},
        "bmc": {"rack1n01": {"silent": True, "delay_ms": 5}},
        "delay_ms": 250,
    }
    assert parse(GOOD).lab["refuse"] == {"rack2n[01-02]": "no"}


def test_modules_are_the_bundled_ones_unless_named():
    assert parse(GOOD).modules == ("labnode",)
    assert parse("cluster: a").modules == ("jobs", "labnode", "service")


NO_ALIASES = "a site file has no anchors and aliases (& and *)"
NODES = "cluster: a\nnodes: {'n[1-3]': }\nservices: {web: }\ndesired:\n"


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("", "site.yaml", "the file is empty"),
        ("# only a comment\n", "site.yaml", "the file is empty"),
        ("- a\n", "1:1", "a site file is a mapping"),
        ("cluster: a\nnodes: [\n", "3:1", "while parsing a flow node"),
        ("cluster: a\n\tnodes:\n", "2:1", "while scanning a plain scalar (line 1): found a tab"),
        ("cluster: a\ncluster: b\n", "2:1", "the key cluster is given already"),
        ("nodes: {}\n", "1:1", "the cluster has no name"),
        ("cluster: \n", "1:9", "there is no value"),
        ("cluster: a b\n", "1:10", "'a b' is not a name"),
        ("cluster: a\nnode: {}\n", "2:1", "unknown key node"),
        ("cluster: a\nnodes: 7\n", "2:8", "a mapping is expected here"),
        ("cluster: &x a\n", "1:10", "a site file has no anchors and aliases (& and *)"),
        ("cluster: !!str a\n", "1:10", "tags are not used here"),
        ("cluster: é\x00\n", "1:11", "the character U+0000 cannot be in such a file"),
        ("cluster: a\n---\nb: 1\n", "2:1", "a second document begins here"),
        ('cluster: "\\Uffffffff"\n', "1:13", "while parsing a quoted scalar"),
        ("lab: " + "[" * DEPTH_MAX, f"1:{5 + DEPTH_MAX}", "deeper than"),
        ("cluster: a\nmodules: service\n", "2:10", "modules are a list"),
        ("cluster: a\nnodes:\n  n[1-: {}\n", "3:3", "node-set 'n[1-', character 2: a bracket"),
        ("cluster: a\nnodes:\n  n1: {rak: 1}\n", "3:13", "a node has no attribute 'rak'"),
        ("cluster: a\nnodes:\n  n1: {rack: '{2}'}\n", "3:14", "unknown placeholder {2}"),
        ("cluster: a\nnodes:\n  n1: {rack: 'a}'}\n", "3:14", "unmatched brace at character 2"),
        ("cluster: a\nnodes:\n  n1: {rack: [1]}\n", "3:14", "a value is expected here"),
        ("cluster: a\nnodes:\n  n1: {rack: }\n", "3:14", "there is no value"),
        (f"cluster: a\nnodes:\n  n1: {{rack: {'x' * 65}}}\n", "3:14", "node.rack takes 65 bytes"),
        ("cluster: a\nservices:\n  web: {run: running}\n", "3:9", "a service has no datum 'run'"),
        ("cluster: a\nservices:\n  web: {port: -1}\n", "3:15", "service.port: -1 is out of range"),
        ("cluster: a\nservices:\n  web: {port: 0}\n", "3:15", "service.port: 0 is out of range"),
        ("cluster: a\nservices: {web: {port: 65536}}\n", "2:24", "service.port: 65536 is out of"),
        (NODES + "lab: {delay: 1}\n", "5:7", "a lab has no 'delay'"),
        (NODES + "lab: {delay_ms: 9999}\n", "5:17", "expected `int` <= 1800"),
        (NODES + "lab: {refuse: {n4: no}}\n", "5:16", "no such node: n4"),
        (NODES + "lab: {bmc: {n1: {lies: much}}}\n", "5:17", "invalid enum value 'much'"),
        (NODES + "  n1: {powr: on}\n", "5:14", "a node has no variable 'powr'"),
        (NODES + "  n1: {power: onn}\n", "5:15", "node.power cannot be 'onn'"),
        (NODES + "  n1: {power: unknown}\n", "5:15", "unknown cannot be desired of power"),
        (NODES + "  n1: {rack: 1}\n", "5:14", "a node has no variable 'rack'"),
        (NODES + "  job:a@n1: {run: running}\n", "5:3", "there is no kind 'job'"),
        (NODES + "  wbe@n1: {run: running}\n", "5:3", "there is no service 'wbe'"),
        (NODES + "  web@n[1-2,7-9]: {run: running}\n", "5:3", "no such node: n[7-9]"),
        (NODES + "  service:web: {run: running}\n", "5:3", "'service:web' selects nothing"),
        (NODES + "  node:a@n1: {power: on}\n", "5:3", "'node:a@n1' selects nothing"),
        (NODES + "  n[1-999999999]: {power: on}\n", "5:3", "node-set 'n[1-999999999]'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_column(text, where, what):
    [(found_where, found_what)] = errors_of(text)
    assert found_where == where
    assert found_what.startswith(what)


@pytest.mark.parametrize(
    ("line", "what", "do"),
    [
        (
            "\tn1: {}",
            "the line begins with a tab",
            "indent it with spaces: YAML takes no tabs there",
        ),
        (
            "  \tn1: {}",
            "the line begins with a tab",
            "indent it with spaces: YAML takes no tabs there",
        ),
        (
            "  @web: {}",
            "@web begins with @, which YAML keeps for itself",
            'put it in quotes: "@web"',
        ),
        (
            "  n1: {rack: @a}",
            "@a begins with @, which YAML keeps for itself",
            'put it in quotes: "@a"',
        ),
        (
            "  n1: {rack: `a}",
            "`a begins with `, which YAML keeps for itself",
            'put it in quotes: "`a"',
        ),
        ("  *: {}", "* begins with *, which YAML keeps for itself", 'put it in quotes: "*"'),
        (
            "  *web: {}",
            NO_ALIASES,
            'put it in quotes: "*web"',
        ),
        ("  &a : {}", NO_ALIASES, 'put it in quotes: "&a"'),
        ("  %a: {}", "%a begins with %, which YAML keeps for itself", 'put it in quotes: "%a"'),
        (
            '  n1: {rack: "{http: /}"}',
            "{http: /} cannot be read",
            "for a mapping, leave out the quotes: {http: /}",
        ),
    ],
)
def test_what_yaml_keeps_for_itself_is_told_as_what_it_was_meant_to_be(line, what, do):
    with pytest.raises(HapteraError) as raised:
        parse_site([SiteFile("site.yaml", f"cluster: c\nnodes:\n{line}\n")], {})
    assert (raised.value.what, raised.value.do) == (what, do)
    assert str(raised.value.where).startswith("site.yaml:3:")


def test_a_name_that_is_nearly_right_is_told_the_right_one():
    with pytest.raises(HapteraError) as raised:
        parse(NODES + "  n1: {powr: on}\n")
    assert str(raised.value) == (
        f"site.yaml:5:14: a node has no variable 'powr' (did you mean power? there are {DESIRABLE})"
    )


def test_two_values_for_one_variable_are_told_with_both_lines_once():
    text = NODES + "  n[1-3]: {power: on}\n  n[2-3]: {power: off}\n"
    assert errors_of(text) == [
        ("6:12", "power of node:n2 is given twice, here and at site.yaml:5:12")
    ]


def test_everything_wrong_is_told_at_once_in_the_order_of_the_lines():
    text = "nodes: {n1: {rak: 1}}\nfoo: 1\ndesired: {n1: {power: maybe}, n2: {power: on}}\n"
    assert [where for where, _ in errors_of(text)] == ["1:1", "1:19", "2:1", "3:23", "3:31"]


def test_no_more_errors_are_told_than_one_reads():
    text = "cluster: a\n" + "".join(f"wrong{line}: 1\n" for line in range(ERRORS_MAX * 2))
    assert len(errors_of(text)) == ERRORS_MAX


@pytest.mark.campaign
def test_node_sets_that_are_sound_alone_but_too_many_together_are_refused():
    keys = "".join(f"  n[1-150000],m{line}: {{}}\n" for line in range(4))
    [(where, what)] = errors_of("cluster: a\nnodes:\n" + keys)
    assert where == "6:3"
    assert "more than 500000 nodes" in what


@pytest.mark.campaign
@pytest.mark.parametrize(
    "more",
    [
        # The last of each is no node-set: it is not even looked at.
        "fault_groups: {a: '@g', b: '@g', c: '@g', d: 'n['}",
        "groups: {g: 'n[1-200000]', h: '@g', i: '@h', j: '@i', k: '@j', l: '@j,n['}\n"
        "desired: {'@l': {power: on}}",
    ],
)
def test_nothing_more_is_expanded_once_there_are_too_many(more):
    groups = "" if "groups: {g" in more else "groups: {g: 'n[1-200000]'}\n"
    errors = errors_of(f"cluster: c\nnodes: {{n1: {{}}}}\n{groups}{more}\n")

    assert any("more than 500000 nodes" in what for _, what in errors)
    assert not any("range of numbers" in what for _, what in errors)


def test_a_file_that_is_missing_or_no_text_is_told(tmp_path):
    with pytest.raises(HapteraError, match="cannot be read: No such file"):
        load_site(tmp_path / "none.yaml", {})
    (tmp_path / "bad.yaml").write_bytes(b"cluster: \xff\n")
    with pytest.raises(HapteraError, match="byte 10 is not UTF-8"):
        load_site(tmp_path / "bad.yaml", {})


fragments = st.sampled_from(
    [*"{}[]:,-@#&*!|>'\"%?~ \n", "\n  ", ": ", "- ", "n[1-2]", "power: on", "nodes:", "{1}", "\\U"]
)


@given(st.lists(fragments, max_size=40).map("".join) | st.text(max_size=40))
def test_any_text_is_a_site_file_or_a_told_error(text):
    try:
        parse("cluster: a\n" + text)
    except HapteraError as error:
        told = (error.what, error.where, error.do)
        assert all(told), told


def test_how_a_service_is_asked_is_written_as_a_text_or_as_one_key_with_its_value():
    site = """
cluster: quick
nodes: {n1: {}}
services:
  a: {command: x, ready: {http: /health}}
  b: {command: x, ready: {tcp: 80}}
  c: {command: x, ready: tcp}
  d: {command: x}
desired: {a@n1: {}, b@n1: {}, c@n1: {}, d@n1: {ready: {command: test -e up}}}
"""
    asked = {one.entity.name: one.desired.get("ready") for one in parse(site).entities}
    assert asked == {
        "n1": None,
        "a": "http /health",
        "b": "tcp 80",
        "c": "tcp",
        "d": "command test -e up",
    }


def test_two_nodes_that_a_module_would_take_for_one_machine_are_an_error_with_both_places():
    site = """
cluster: quick
modules: [labnode]
nodes:
  n1: {platform: labnode, bmc: "10.0.0.1"}
  n2: {platform: labnode, bmc: "10.0.0.1"}
  n3: {platform: other, bmc: "10.0.0.1"}
  n4: {platform: labnode}
  n5: {platform: labnode}
"""
    assert errors_of(site) == [
        ("6:27", "bmc '10.0.0.1' of node:n2 is node:n1's already, at site.yaml:5:27")
    ]
