"""What an import has to say: all of its source that does not stand in the site, and where it is."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from haptera.site.syntax.tree import Branch, Errors, Leaf, Place, Series, Tree


class RemarkSort(StrEnum):
    """The gravest first."""

    CONFLICT = "conflict"
    TWICE = "twice"
    SECRET = "secret"
    LEFT_OUT = "left out"
    NOTE = "note"


@dataclass(slots=True)
class Remark:
    """One thing to say, and the nodes that it is so of; it never has a value of the source."""

    sort: RemarkSort
    what: str
    do: str | None
    nodes: dict[str, None] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)


class Remarks:
    """Gathers remarks; what is so of many nodes is one."""

    def __init__(self) -> None:
        self._found: dict[tuple[RemarkSort, str, str | None], Remark] = {}

    def add(
        self,
        sort: RemarkSort,
        what: str,
        place: Place,
        *,
        node: str | None = None,
        do: str | None = None,
    ) -> None:
        """Say this of a node, or of the source as a whole."""
        one = self._found.setdefault((sort, what, do), Remark(sort, what, do))
        one.places.append(place)
        if node is not None:
            one.nodes[node] = None

    def leave_out(
        self, what: str, place: Place, *, node: str | None = None, do: str | None = None
    ) -> None:
        """Say that this has no place in a site; of what may be secret, where it belongs."""
        if is_secret(what):
            self.add(RemarkSort.SECRET, what, place, node=node, do=_KEEP)
        else:
            self.add(RemarkSort.LEFT_OUT, what, place, node=node, do=do)

    def take(self, errors: Errors) -> None:
        """Say what the text has twice."""
        for place, error in errors:
            self.add(RemarkSort.TWICE, f"{error.what}; the first was taken", place, do=error.do)

    def entries(self, tree: Tree, what: str) -> tuple[tuple[Leaf, Tree], ...]:
        """What is in a mapping; of nothing written, and of what is none, nothing."""
        if isinstance(tree, Branch):
            return tree.entries
        if not (isinstance(tree, Leaf) and tree.empty):
            self.add(RemarkSort.LEFT_OUT, f"{what}: it is not a mapping", tree.place)
        return ()

    def items(self, tree: Tree, what: str) -> tuple[Tree, ...]:
        """What is in a list; of nothing written, and of what is none, nothing."""
        if isinstance(tree, Series):
            return tree.items
        if not (isinstance(tree, Leaf) and tree.empty):
            self.add(RemarkSort.LEFT_OUT, f"{what}: it is not a list", tree.place)
        return ()

    def texts(self, tree: Tree, what: str) -> Iterator[Leaf]:
        """The texts in a list."""
        for one in self.items(tree, what):
            if isinstance(one, Leaf) and not one.empty:
                yield one
            else:
                self.add(RemarkSort.LEFT_OUT, f"{what}: one is not a text", one.place)

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Remark]:
        """The gravest first, then as they came."""
        order = list(RemarkSort)
        return iter(sorted(self._found.values(), key=lambda one: order.index(one.sort)))


def text_of(tree: Tree) -> str | None:
    """The text that stands here; None where there is none, or something else."""
    return tree.text or None if isinstance(tree, Leaf) and not tree.empty else None


def is_secret(name: str) -> bool:
    """Whether what is called so is for few eyes.

    >>> is_secret("variable ansible_become_pass"), is_secret("passenger"), is_secret("sshKey")
    (True, False, False)
    """
    return _SECRET.search(name) is not None


_SECRET: Final = re.compile(
    r"passw|passphrase|secret|token|credential|private.?key|api.?key|access.?key|vault"
    r"|(?:^|[^a-z])pass(?:$|[^a-z])",
    re.IGNORECASE,
)
_KEEP: Final = "keep it by `haptera secret set NAME`; settings of a module name it {secret: NAME}"
