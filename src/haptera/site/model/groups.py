"""Groups of a site: named node-sets, which may name each other."""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from haptera.model.declared.desired_check import nearest
from haptera.model.entity import check_name
from haptera.model.errors import HapteraError, LimitError, UnknownNameError
from haptera.selectors.names import ALL_NODES, GroupName
from haptera.selectors.nodeset import expand
from haptera.site.syntax.tree import Errors, Leaf, Tree, entries_of, leaf

# All node-sets of a site together, and all groups of groups.
EXPANDED_MAX: Final = 500_000

# The nodes of a group that no name in the file stands for.
Others = Callable[[GroupName], Collection[str]]


class Groups:
    """The nodes of each group; `others` says which those of attributes (`@rack:r1`) and `@*` are.

    Raises:
        HapteraError: from a call, where nobody knows the group, or it has itself in it.
    """

    def __init__(self, texts: Mapping[str, Leaf], others: Others) -> None:
        self._texts = texts
        self._others = others
        self._found: dict[str, tuple[str, ...]] = {}
        self._expanded = 0
        self._under_way: list[str] = []

    def __call__(self, group: GroupName) -> Collection[str]:
        if group.source is not None or group == ALL_NODES:
            return self._others(group)
        if group.name not in self._texts:
            raise UnknownNameError(
                f"there is no group {group.name!r}", do=nearest(group.name, self._texts)
            )
        return self._of(group.name)

    def _of(self, name: str) -> tuple[str, ...]:
        if name not in self._found:
            if name in self._under_way:
                chain = " > ".join([*self._under_way[self._under_way.index(name) :], name])
                raise HapteraError(f"a group contains itself: {chain}", do="take one out")
            check_expanded(self._expanded)
            self._under_way.append(name)
            try:
                self._found[name] = expand(self._texts[name].text, self)
            finally:
                self._under_way.pop()
            self._expanded += len(self._found[name])
        return self._found[name]


def check_expanded(names: int) -> None:
    """See that the node-sets of a site name no more than a parent can work through.

    Raises:
        HapteraError: they do.
    """
    if names > EXPANDED_MAX:
        what = f"the node-sets of this site name more than {EXPANDED_MAX} nodes"
        raise LimitError(what, do="write fewer of them")


def not_yet(group: GroupName) -> Collection[str]:
    """What is known of all nodes while they are being declared: nothing.

    Raises:
        HapteraError: always.
    """
    what = "a pattern" if group == ALL_NODES else f"the group {group}"
    raise HapteraError(f"{what} does not declare nodes", do="name them: rack[1-4]n[01-40]")


def read_groups(tree: Tree, errors: Errors) -> dict[str, Leaf]:
    """The node-set of each group, which is expanded where it is used."""
    found: dict[str, Leaf] = {}
    for key, inner in entries_of(tree, errors):
        with errors.at(key.place):
            name = check_name(key.text)
            with errors.at(inner.place):
                found[name] = leaf(inner)
    return found
