"""JSON that a service sent, read leniently: of each question what it needs, and no more.

A member that is missing, null or of another type than its schema says is as if it were not there.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urljoin, urlsplit

# What a path may have as it is; all else is written with percents.
_SAFE: Final = "/:@!$&'()*+,;=?%~"


def document_of(content: bytes) -> "Document":
    """What an answer says; nothing where it is no JSON object.

    More is read than JSON is: a byte-order mark, control characters, bytes that are no UTF-8.
    """
    try:
        text = content.decode("utf-8-sig", errors="replace")
        # Whole numbers of any length; those of the standard library have a limit.
        found = json.loads(text, strict=False, parse_int=float)
    except (ValueError, RecursionError):
        return Document({})
    return Document(found if isinstance(found, dict) else {})


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON object that a service sent; each question is asked of it by a path of names."""

    members: Mapping[str, Any]

    def text(self, *path: str) -> str | None:
        return _text(self._find(path))

    def texts(self, *path: str) -> Sequence[str]:
        found = self._find(path)
        texts = map(_text, found if isinstance(found, list) else [])
        return [one for one in texts if one is not None]

    def documents(self, *path: str) -> Sequence["Document"]:
        found = self._find(path)
        parts = found if isinstance(found, list) else []
        return [Document(one) for one in parts if isinstance(one, dict)]

    def link(self, *path: str) -> str | None:
        """A reference to another resource: `{"@odata.id": TEXT}`, or the text alone."""
        return _reference(self._find(path))

    def links(self, *path: str) -> Sequence[str]:
        found = self._find(path)
        references = map(_reference, found if isinstance(found, list) else [])
        return [one for one in references if one is not None]

    def document(self, *path: str) -> "Document | None":
        found = self._find(path)
        return Document(found) if isinstance(found, dict) else None

    def _find(self, path: Sequence[str]) -> Any:
        found: Any = self.members
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return found


def _reference(found: Any) -> str | None:
    return _text(found.get("@odata.id") if isinstance(found, Mapping) else found)


def _text(found: Any) -> str | None:
    """A text that is not empty; for half of a character, which an escape can name, a mark."""
    is_text = isinstance(found, str) and found
    return found.encode(errors="replace").decode() if is_text else None


def path_of(reference: str, beside: str) -> str:
    """The path that a reference names in what was read at the path `beside`.

    Absolute ones name the service in its own words, which may not be those by which we reach it:
    whatever they say, it is asked where it always is.

    >>> path_of("https://bmc.example/redfish/v1/Systems/1", "/redfish/v1/Systems")
    '/redfish/v1/Systems/1'
    >>> path_of("1", "/redfish/v1/Systems/")
    '/redfish/v1/Systems/1'

    It begins with a slash: a proxy in between would send what names a place on to there.

    >>> path_of("x:https://elsewhere.example/", "/redfish/v1/Systems")
    '/https://elsewhere.example/'
    """
    try:
        found = urlsplit(urljoin(beside, reference))
    except ValueError:  # Brackets of no address: there is nothing of this name.
        return f"/{quote(reference, safe='/')}"
    query = f"?{found.query}" if found.query else ""
    slash = "" if found.path.startswith("/") else "/"
    return quote(f"{slash}{found.path}{query}", safe=_SAFE)
