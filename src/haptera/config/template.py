"""Values with holes, `127.0.{1}.{2}`, filled for each node."""

import re
from collections.abc import Mapping

from haptera.model.desirable import nearest
from haptera.model.errors import HapteraError

_HOLE = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<name>[^{}]*)\}|(?P<alone>[{}])")


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with each `{name}` replaced by its value; `{{` and `}}` are braces.

    >>> fill("{name} listens on 127.0.{1}.{2}", {"name": "r1n2", "1": "1", "2": "2"})
    'r1n2 listens on 127.0.1.2'

    Raises:
        HapteraError: a name has no value, or a brace stands alone.
    """
    return _HOLE.sub(lambda hole: _filled(hole, values), text)


def _filled(hole: re.Match[str], values: Mapping[str, str]) -> str:
    if hole["brace"] is not None:
        return hole["brace"][0]
    if hole["alone"] is not None:
        raise HapteraError(
            f"the brace at character {hole.start() + 1} stands alone", do="double it: {{ or }}"
        )
    if hole["name"] not in values:
        raise HapteraError(
            f"nothing is known as {{{hole['name']}}}", do=nearest(hole["name"], values)
        )
    return values[hole["name"]]
