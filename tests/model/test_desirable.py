"""What may be desired of an entity, and how it is said where something may not."""

import pytest

from haptera.kinds import KINDS
from haptera.model.declared.desired_check import (
    LISTED_MAX,
    check_attribute,
    check_desired,
    nearest,
)
from haptera.model.errors import HapteraError
from tests.kinds.listed import ATTRIBUTES, DESIRABLE

NODE, SERVICE = KINDS["node"], KINDS["service"]


def test_values_come_back_in_the_type_of_their_variable():
    assert check_desired(NODE, "power", "on") == "on"
    assert check_desired(SERVICE, "port", "8080") == 8080
    assert check_desired(SERVICE, "port", 8080) == 8080
    assert check_desired(SERVICE, "command", "true") == "true"
    assert check_attribute(NODE, "rack", "7") == "7"


@pytest.mark.parametrize(
    ("kind", "name", "value", "what", "do"),
    [
        (
            NODE,
            "powr",
            "on",
            "a node has no variable 'powr'",
            f"did you mean power? there are {DESIRABLE}",
        ),
        (
            NODE,
            "power",
            "onn",
            "node.power cannot be 'onn'",
            "did you mean on? there are hung, off, on",
        ),
        (NODE, "power", 1, "node.power cannot be 1", "there are hung, off, on"),
        (NODE, "power", "unknown", "unknown cannot be desired of power", "leave it out"),
        (
            NODE,
            "platform",
            "lab",
            "a node has no variable 'platform'",
            "it is an attribute: declare it, in a site file under `nodes`",
        ),
        (SERVICE, "applied", "stale", "applied is set by haptera itself", "leave it out"),
        (SERVICE, "port", "80a", "service.port must be a whole number, not '80a'", "write digits"),
        (SERVICE, "port", "9" * 19, "service.port does not fit 64 bits", "write a smaller number"),
        (SERVICE, "command", 7, "service.command must be text, not 7", "put it in quotes"),
        (
            SERVICE,
            "command",
            "x" * 513,
            "service.command takes 513 bytes, 512 at most",
            "make it shorter",
        ),
        (
            SERVICE,
            "command",
            "a\0b",
            "service.command has the character U+0000",
            "remove it: it cannot be displayed",
        ),
        (
            SERVICE,
            "command",
            "\ud800",
            "service.command has the character U+D800",
            "remove it: it cannot be displayed",
        ),
    ],
)
def test_what_cannot_be_desired_is_told(kind, name, value, what, do):
    with pytest.raises(HapteraError) as raised:
        check_desired(kind, name, value)
    assert (raised.value.what, raised.value.do) == (what, do)


def test_a_variable_among_attributes_is_told_where_it_belongs():
    with pytest.raises(HapteraError) as raised:
        check_attribute(NODE, "power", "on")
    assert raised.value.what == "a node has no attribute 'power'"
    assert (
        raised.value.do == "it changes, so it is desired: in a site file write it under `desired`"
    )


def test_of_many_names_only_the_nearest_is_told():
    many = [f"name{n}" for n in range(LISTED_MAX)]
    assert nearest("powr", ["power", *many]) == "did you mean power? there are 25 names"
    assert nearest("powr", many).startswith("there are name0, ")


def test_an_unknown_attribute_is_told_with_the_nearest():
    with pytest.raises(HapteraError) as raised:
        check_attribute(NODE, "rak", "1")
    assert raised.value.what == "a node has no attribute 'rak'"
    assert raised.value.do == f"did you mean rack? there are {ATTRIBUTES}"
