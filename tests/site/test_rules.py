"""Policies and budgets in a site file: what they say, whose they are, how they are refused."""

import pytest

from haptera.model.changes import (
    Declare,
    Desired,
    SetDesired,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import InputError
from haptera.rest.schemas import SiteFile
from haptera.site import changes, parse_site
from tests.kinds.listed import ALL_KINDS, MODULES

HEAD = "cluster: c\nnodes: {'n[1-2]': {}}\n"


def rules(text):
    site = parse_site([SiteFile("site.yaml", HEAD + text)], {})
    return {str(one.entity): one.desired for one in site.entities if one.entity.node is None}


def errors_of(text):
    with pytest.raises(InputError) as raised:
        rules(text)
    return [(one.where.removeprefix("site.yaml:"), one.what, one.do) for one in raised.value.errors]


def test_a_list_of_policies_ranks_them_as_they_stand_and_numbers_them():
    assert rules(
        "policies:\n"
        "  - {for: '*', back_off: 500ms, back_off_max: 2m, within: 1h}\n"
        "  - {for: n1, parts: service.start, fails_to: failed}\n"
    ) == {
        "policy:site-1": {
            "of": "*", "backoff_ms": 500, "backoff_ms_max": 120_000, "within_ms": 3_600_000,
            "rank": 1,
        },
        "policy:site-2": {"of": "n1", "parts": "service.start", "fails_to": "failed", "rank": 2},
    }  # fmt: skip


def test_a_mapping_names_its_rules():
    text = "policies: {slow: {for: n*, attempts: 2}}\nbudgets: {all: {per: parent, share: 10%}}\n"

    assert rules(text) == {
        "policy:slow": {"of": "n*", "attempts": 2, "rank": 1},
        "budget:all": {"per": "parent", "share": 10},
    }


def test_no_rules_are_written_in_several_ways():
    assert rules("") == rules("policies:\nbudgets: []\n") == rules("policies: {}\n") == {}


def test_all_that_is_wrong_is_told_with_its_place():
    modules = ", ".join(sorted([*MODULES.split(", "), "supervise", "sync"]))
    assert errors_of(
        "policies:\n"
        "  - {parts: labnode, attempts: 0}\n"
        "  - {for: 'n[1-3]', back_of: 4s, within: 4}\n"
        "  - {for: 'n[1', parts: labnod.on}\n"
        "  - twice\n"
        "budgets:\n"
        "  a b: {per: rack, share: half}\n"
        "  c: {for: n1, at_once: [1]}\n"
    ) == [
        ("4:5", "this policy does not say 'for'", "write `for: …`"),
        (
            "4:32",
            "policy.attempts: 0 is out of range",
            "write one from 1 to 1000000",
        ),
        ("5:11", "no such node: n3", "declare it under `nodes`"),
        (
            "5:21",
            "a policy has no 'back_of'",
            "did you mean back_off? there are attempts, back_off, back_off_max, cool_down,"
            " fails_to, for, parts, within",
        ),
        ("5:42", "'4' is not a duration", "write 500ms, 30s, 15m, 2h or 1d"),
        (
            "6:5",
            "this policy has no effect: it sets no value",
            "write one of attempts, back_off, back_off_max, cool_down, within, fails_to",
        ),
        (
            "6:11",
            "policy.of: selector 'n[1', character 2: a bracket that is not closed",
            "write a ]",
        ),
        (
            "6:25",
            "there is no module 'labnod'",
            f"did you mean labnode? there are {modules}",
        ),
        ("7:5", "a policy is a mapping", "write `for: SELECTOR` below"),
        (
            "9:3",
            "'a b' is not a name",
            "use at most 64 letters, digits, dots, dashes and underscores, the first and last a"
            " letter or a digit",
        ),
        ("10:6", "this budget does not say 'per'", "write `per: …`"),
        ("10:25", "a value is expected here, not a list or mapping", "write one value"),
    ]
    assert errors_of("policies: many\n") == [
        ("3:11", "a list is expected here", "write `- for: SELECTOR` below")
    ]


def test_rules_are_set_and_pruned_as_all_that_the_site_owns():
    slow, old = EntityId("policy", "slow", None), EntityId("budget", "old", None)
    current = [
        StoredEntity(node_id("n1"), {}, "site", {}, 1),
        StoredEntity(node_id("n2"), {}, "site", {}, 1),
        StoredEntity(
            slow, {}, "site", {"of": Desired("n1", "site"), "within_ms": Desired(5, "site")}, 1
        ),
        StoredEntity(old, {}, "site", {"per": Desired("node", "site")}, 1),
        StoredEntity(EntityId("freeze", "f1", None), {}, "user:eve", {}, 1),
    ]
    text = HEAD + "policies: {slow: {for: n2, attempts: 2}, fast: {for: n1, attempts: 2}}\n"
    site = parse_site([SiteFile("site.yaml", text)], {})
    fast = EntityId("policy", "fast", None)

    assert changes(site, current) == (
        Undeclare(old),
        Declare(fast, {}, "site"),
        SetDesired(fast, "attempts", 2, "site"),
        SetDesired(fast, "of", "n1", "site"),
        SetDesired(fast, "rank", 2, "site"),
        SetDesired(slow, "attempts", 2, "site"),
        SetDesired(slow, "of", "n2", "site"),
        SetDesired(slow, "rank", 1, "site"),
        UnsetDesired(slow, "within_ms"),
    )


def test_a_rule_that_never_means_anything_is_refused():
    kinds = f"there are {ALL_KINDS}"
    assert errors_of("policies: [{for: 'rack:*', attempts: 2}]\n") == [
        ("3:18", "selector 'rack:*', character 1: there is no kind 'rack'", kinds)
    ]
    assert errors_of("budgets: {all: {per: parent}}\n") == [
        (
            "3:16",
            "this budget has no effect: it sets no value",
            "write one of at_once, share, per_hour",
        )
    ]


def test_rules_go_by_names_groups_and_attributes_and_by_no_state():
    of = "not node.platform=labnode or n[1-2]!n2"
    assert rules(f"policies: [{{for: '{of}', attempts: 2}}]\n")["policy:site-1"]["of"] == of
    ((where, what, _),) = errors_of("policies: [{for: 'n1 and power=off', attempts: 2}]\n")
    assert (where, what) == (
        "3:18",
        "policy.of: selector 'n1 and power=off', character 8:"
        " a rule cannot select by power: it must hold in every state",
    )
    ((_, what, do),) = errors_of("budgets: [{for: 'rak=r1', at_once: 2, per: node}]\n")
    assert what == ("budget.of: selector 'rak=r1', character 1: nodes have no attribute 'rak'")
    assert do.startswith("did you mean rack?")


def test_a_budget_of_health_counts_nodes_in_care() -> None:
    assert rules("budgets: {care: {per: health, at_once: 3, share: 50%}}\n") == {
        "budget:care": {"per": "health", "at_once": 3, "share": 50}
    }
