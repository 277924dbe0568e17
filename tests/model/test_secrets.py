"""References to secrets: what names one, where they are found, what they become."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.kinds import module
from haptera.model.declared.desired_check import check_plain
from haptera.model.declared.secrets import Keeper, Reference, parse_reference, references, resolved
from haptera.model.errors import HapteraError


@pytest.mark.parametrize(
    ("text", "keeper", "name"),
    [
        ("bmc", Keeper.PARENT, "bmc"),
        ("file:/etc/bmc key", Keeper.FILE, "/etc/bmc key"),
        ("env:BMC_KEY", Keeper.ENVIRONMENT, "BMC_KEY"),
    ],
)
def test_a_secret_is_named_where_it_is_kept(text, keeper, name):
    assert parse_reference(text) == Reference(keeper, name)
    assert str(parse_reference(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "a b", "../bmc", "file:bmc", "file:", "env:A-B", "env:", "vault:x", "file:/" + "x" * 300],
)
def test_what_names_no_secret_is_refused(text):
    with pytest.raises(HapteraError) as raised:
        parse_reference(text)
    assert raised.value.do


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ('{"a": {"secret": "x", "more": 1}}', "a secret is the whole value"),
        ('{"a": [{"secret": 7}]}', "a secret is the whole value"),
        ('{"a": {"secret": "file:x"}}', "settings: this is not the name of a secret"),
        ('{"secret": "x"}', "settings as a whole cannot be a secret"),
    ],
)
def test_settings_that_name_a_secret_wrongly_cannot_be_desired(settings, what):
    with pytest.raises(HapteraError, match=what):
        check_plain(module.settings, settings)


plain = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
named = st.sampled_from(["bmc", "file:/k", "env:K"]).map(lambda name: {"secret": name})
settings = st.recursive(
    plain | named,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=3).filter(lambda key: key != "secret"), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(settings)
def test_each_reference_becomes_its_value_and_nothing_else_changes(data):
    found = [*references(data)]
    # A value that looks like a reference is none: it is put in last.
    values = {one: f"<{one}>" for one in found}

    def plainly(one):
        match one:
            case {"secret": str(name)}:
                return f"<{name}>"
            case dict():
                return {key: plainly(inner) for key, inner in one.items()}
            case list():
                return [plainly(inner) for inner in one]
        return one

    assert resolved(data, values) == plainly(data)
    assert [*references(resolved(data, values))] == []
