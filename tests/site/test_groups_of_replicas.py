"""Groups in a site file: what they name must be there (B3)."""

import pytest

from haptera.model.errors import InputError
from haptera.rest.schemas import SiteFile
from haptera.site import parse_site

SITE = """\
cluster: c
nodes: {'n[1-2]': {}}
desired:
  group:ledger: {command: serve, replicas: 2, %s}
"""


def read(text):
    return parse_site([SiteFile("site.yaml", SITE % text)], {})


@pytest.mark.parametrize(
    ("text", "what", "do"),
    [
        ("on: 'n[1-4]'", "no such node: n[3-4]", "declare it under `nodes`"),
        ("on: '@gpu'", "there is no group 'gpu'", "there are none"),
        (
            "apart: rak",
            "group.apart: nodes have no attribute 'rak' to keep replicas apart by",
            None,
        ),
        (
            "limits: memory 1",
            "group.limits: 'memory 1' is not a limit",
            "write memory 512MB, cpu 150% or sentinel FILE 30s",
        ),
        (
            "limits: 'cpu 5%, cpu 6%'",
            "group.limits: 'cpu 6%' is there twice",
            "write it once",
        ),
        (
            "limits: sentinel beat 200ms",
            "group.limits: 200ms is out of range",
            "write 1000 to 86400000, as silent_ms",
        ),
        (
            "leader: loudest",
            "group.leader: 'loudest' is not a way to choose the leader",
            "write lowest, first, plug-in, none or rank N",
        ),
        (
            "leader: rank 2",
            "group.leader: there is no rank 2 of 2 replicas",
            "write a rank from 0 to 1, or more replicas",
        ),
        (
            "lead: 2",
            "group.lead: there is no rank 2 of 2 replicas",
            "write a rank from 0 to 1, or more replicas",
        ),
    ],
)
def test_what_a_group_names_that_is_not_there_is_refused_with_its_place(text, what, do):
    with pytest.raises(InputError) as raised:
        read(text)

    (error,) = raised.value.errors
    assert error.what == what
    assert error.where.startswith("site.yaml:4:")
    assert do is None or error.do == do


def test_a_group_that_would_run_nothing_is_refused_with_its_place():
    with pytest.raises(InputError) as raised:
        parse_site([SiteFile("site.yaml", SITE.replace("command: serve, ", "") % "down: 1")], {})

    (error,) = raised.value.errors
    assert (error.where, error.what, error.do) == (
        "site.yaml:4:3",
        "it has no command, so none of its replicas would run",
        "set its command as well",
    )


def with_more(text):
    more = SiteFile("more.yaml", f"desired:\n  group:ledger: {{{text}}}\n")
    return parse_site([SiteFile("site.yaml", SITE % "down: 2"), more], {})


def test_a_group_may_be_declared_in_several_files_and_is_checked_as_a_whole():
    (ledger,) = [one for one in with_more("lead: 1").entities if one.entity.kind == "group"]
    assert ledger.desired == {"command": "serve", "replicas": 2, "down": 2, "lead": 1}

    with pytest.raises(InputError) as raised:
        with_more("lead: 2")
    assert [(one.where, one.what) for one in raised.value.errors] == [
        ("more.yaml:2:18", "group.lead: there is no rank 2 of 2 replicas")
    ]


def test_nodes_that_are_there_are_taken():
    site = read("on: 'n[1-2]', limits: 'memory 2GB, sentinel a beat 30s', leader: rank 1, lead: 0")

    assert [str(one.entity) for one in site.entities if one.entity.kind == "group"] == [
        "group:ledger"
    ]
