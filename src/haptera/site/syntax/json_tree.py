"""JSON as a tree: what another tool wrote, each piece with its place, no key lost unseen."""

import json
import re
from typing import Final

from haptera.model.errors import LimitError, ParseError
from haptera.site.syntax.tree import Errors, Tree
from haptera.site.syntax.yaml_tree import read_yaml

# Facts that a tool gathered may lie deeper than a site file ever does.
JSON_DEPTH_MAX: Final = 64

# Two escapes that are one character for JSON and none for YAML; and characters that JSON takes as
# they are, and YAML takes as line breaks, or not at all.
_UNLIKE_YAML: Final = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    "|[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
)


def read_json(text: str, file: str, errors: Errors, do: str) -> Tree:
    """The tree of one JSON text; of a key that is there twice the first counts, with a remark.

    The standard library says whether it is JSON; the reader of YAML, which includes JSON but
    for some characters, says where each piece is. `do` says how to have the JSON that is due.

    Raises:
        HapteraError: the text is no JSON, or too deep, or no tool writes it so: a line ends before
            a colon, or a key has more than 1,024 characters.
    """
    do = f"correct the JSON, or {do}"
    try:
        # A number may have more digits than Python makes an `int` of.
        json.loads(text, parse_int=float)
    except json.JSONDecodeError as error:
        where = f"{file}:{error.lineno}:{error.colno}"
        raise ParseError(f"no JSON: {error.msg}", where=where, do=do) from None
    except RecursionError:
        raise LimitError(f"deeper than {JSON_DEPTH_MAX} levels", where=file, do=do) from None
    return read_yaml(_UNLIKE_YAML.sub(_escaped, text), file, errors, JSON_DEPTH_MAX)


def _escaped(found: re.Match[str]) -> str:
    if found[2] is None:
        return f"\\u{ord(found[0]):04x}"
    pair = bytes.fromhex(found[2] + found[3]).decode("utf-16-be")
    return f"{found[1]}\\U{ord(pair):08x}"
