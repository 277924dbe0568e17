"""What is advised to be written in a site file can be written there."""

import re
from pathlib import Path

import pytest

from haptera.kinds import KINDS
from haptera.model.declared.desired_check import check_attribute, find_desirable
from haptera.model.declared.schema import Attribute, Kind
from haptera.model.errors import HapteraError
from haptera.site.model.site import KEYS

SOURCES = Path(__file__).resolve().parents[2] / "src" / "haptera"
# As one that a package brings: its name and an s are no key of a site file.
COOLANT = Kind("coolant", (), (Attribute("coolant", "loop"),))
ALL = [*KINDS.values(), COOLANT]
SECTION = re.compile(r"under `(\w+)`")


@pytest.mark.parametrize("kind", ALL, ids=[one.name for one in ALL])
def test_advice_on_a_name_of_a_kind_names_keys_that_a_site_file_has(kind: Kind) -> None:
    attributes = [one.name for one in kind.attributes]
    desirable = [one.name for one in (*kind.variables, *kind.plain)]
    advised = [advice(find_desirable, kind, name) for name in attributes]
    advised += [advice(check_attribute, kind, name, "1") for name in desirable]
    named = {section for text in advised for section in SECTION.findall(text)}
    assert named <= {*KEYS}
    # Nodes alone have attributes there, and rules are no entities under `desired`.
    assert "nodes" not in named or kind.name == "node"
    assert "desired" not in named or not kind.everywhere


def advice(find: object, *given: object) -> str:
    with pytest.raises(HapteraError) as caught:
        find(*given)  # type: ignore[operator]
    assert caught.value.do is not None
    return caught.value.do


def test_all_advice_in_the_code_names_keys_that_a_site_file_has() -> None:
    advised = re.compile(r"""(?:add|declare|write|put)[^"'\n]* under `(\{?[\w.]+\}?s?)`""")
    texts = {path: path.read_text() for path in SOURCES.rglob("*.py")}
    found = {(path.name, one) for path, text in texts.items() for one in advised.findall(text)}
    assert {one for _, one in found} >= {"nodes", "modules", "desired"}
    assert [pair for pair in found if pair[1] not in KEYS] == []
