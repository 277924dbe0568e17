"""ClusterShell's groups: group files in YAML, flat ones, and what groups.conf says of them."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from haptera.model.errors import HapteraError, LimitError
from haptera.rest.schemas import SiteFile
from haptera.selectors.names import EVERY, GroupName, Groups
from haptera.selectors.nodeset import expand
from haptera.site.imports.found import MEMBERS_MAX, FoundSite
from haptera.site.imports.remarks import Remarks, RemarkSort
from haptera.site.syntax.sources import read_foreign_tree
from haptera.site.syntax.tree import Branch, Errors, Leaf, Place, Series, Tree

YAML_SUFFIXES: Final = (".yaml", ".yml")
CONF_SUFFIX: Final = ".conf"
# The source that ClusterShell's own groups.conf begins with, and the group of all its nodes.
LOCAL: Final = "local"
ALL: Final = "all"
NESTED_MAX: Final = 32

_MAIN: Final = "Main"
_SECTION: Final = re.compile(r"\[([^\]]*)\]\s*")
_OPTION: Final = re.compile(r"(default|confdir|autodir)\s*[:=]\s*(.*)")
# The folder that groups.conf is in.
_HOME: Final = "$CFGDIR"
_FLAT: Final = re.compile(r"([^\s:#]+)\s*:\s*(.*)")
# Blanks alone are between node-sets, too.
_BETWEEN: Final = re.compile(r"(?<=[^\s,&!^])\s+(?=[^\s,&!^])")


def read_clustershell(
    files: Sequence[SiteFile], attributes: Mapping[str, str], default: str | None
) -> FoundSite:
    """All nodes that groups name, and the groups.

    Those of the default source keep their names, GROUP of another SOURCE is called SOURCE.GROUP.
    `attributes` names the source of each of them: a node has the name of its group there.

    Raises:
        HapteraError: a file cannot be read.
    """
    found = FoundSite()
    sources = _Sources(found.remarks)
    for file in files:
        sources.read(file)
    sources.close(default)
    for source, groups in sources.texts.items():
        names = [name for name, one in attributes.items() if one == source]
        for group, text in groups.items():
            nodes = sources.nodes(source, group)
            if nodes is None:
                continue
            there = [one for name in nodes if (one := found.node(name, text.place)) is not None]
            for name in names:
                for one in there:
                    found.attribute(one, name, group, text.place)
            if not names:
                called = group if source == sources.default else f"{source}.{group}"
                found.group(called, nodes, text.place)
    return found


class _Sources:
    """The groups of each source as they are written, and the nodes that they come to."""

    def __init__(self, remarks: Remarks) -> None:
        self.default: str | None = None
        self.texts: dict[str, dict[str, Leaf]] = {}
        self._remarks = remarks
        self._asked: dict[str, Place] = {}
        self._nodes: dict[GroupName, tuple[str, ...]] = {}
        self._under_way: list[GroupName] = []
        self._expanded = 0

    def read(self, file: SiteFile) -> None:
        """Take in a file, which its name tells the form of."""
        suffix = PurePath(file.name).suffix
        if suffix in YAML_SUFFIXES:
            self._read_yaml(file)
        elif suffix == CONF_SUFFIX:
            self._read_conf(file)
        else:
            self._read_flat(file)

    def close(self, default: str | None) -> None:
        """Settle which source is the default one, and remark on those that only commands know."""
        for source, place in self._asked.items():
            if source not in self.texts:
                what = f"source {source}: commands tell its groups, and these are not run"
                do = f"write its groups into a file groups.d/{source}.yaml"
                self._remarks.add(RemarkSort.LEFT_OUT, what, place, do=do)
        only = next(iter(self.texts)) if len(self.texts) == 1 else LOCAL
        self.default = default or self.default or only

    def nodes(self, source: str, name: str) -> tuple[str, ...] | None:
        """The nodes of a group; None where its node-set cannot be read."""
        try:
            return self._of(GroupName(source, name))
        except HapteraError as error:
            what = f"group {GroupName(source, name)}: {error.what}"
            self._remarks.add(
                RemarkSort.LEFT_OUT, what, self.texts[source][name].place, do=error.do
            )
            return None

    def _of(self, group: GroupName) -> tuple[str, ...]:
        """The nodes of a group, which is there."""
        if group not in self._nodes:
            text = self.texts[str(group.source)][group.name]
            if self._expanded > MEMBERS_MAX:
                what = f"groups name more than {MEMBERS_MAX} nodes, all together"
                raise LimitError(what, do="import a part of them")
            if group in self._under_way or len(self._under_way) == NESTED_MAX:
                what = f"it has itself in it, or more than {NESTED_MAX} groups in each other"
                raise HapteraError(what, do="write its nodes")
            self._under_way.append(group)
            try:
                within = self._within(str(group.source), text.place)
                joined = _BETWEEN.sub(",", text.text.strip())
                self._nodes[group] = expand(joined, within) if joined else ()
                self._expanded += len(self._nodes[group])
            finally:
                self._under_way.pop()
        return self._nodes[group]

    def _within(self, own: str, place: Place) -> Groups:
        """What groups are to a node-set of this source, where it names no other."""

        def nodes(group: GroupName) -> Collection[str]:
            source = own if group.source is None else group.source
            there = self.texts.get(source, {})
            if group.name in there:
                return self._of(GroupName(source, group.name))
            if group.name == EVERY:
                return self._all_of(source, there)
            what = f"there is no group {GroupName(source, group.name)}, so it counts as empty"
            self._remarks.add(RemarkSort.CONFLICT, what, place)
            return ()

        return nodes

    def _all_of(self, source: str, there: Collection[str]) -> Collection[str]:
        """The nodes of the group `all`; without one, those of all groups."""
        groups = [GroupName(source, name) for name in ([ALL] if ALL in there else there)]
        asking = [one for one in groups if one not in self._under_way]
        return dict.fromkeys(name for one in asking for name in self._of(one))

    def _read_yaml(self, file: SiteFile) -> None:
        errors = Errors()
        tree = read_foreign_tree(file, errors)
        self._remarks.take(errors)
        for source, inner in self._remarks.entries(tree, file.name):
            for group, nodes in self._remarks.entries(inner, f"source {source.text}"):
                self._add(source.text, group, _node_set(nodes))

    def _read_flat(self, file: SiteFile) -> None:
        """Lines `GROUP: NODE-SET` of the source that is called as the file is, less its ending."""
        name = PurePath(file.name)
        source = name.stem if name.suffix else LOCAL
        for place, line in _lines(file):
            found = _FLAT.fullmatch(line)
            if found is None:
                self._remarks.add(RemarkSort.LEFT_OUT, "a line that is not GROUP: NODE-SET", place)
            else:
                group, nodes = (Leaf(text, quoted=True, place=place) for text in found.groups())
                self._add(source, group, nodes)

    def _read_conf(self, file: SiteFile) -> None:
        """Which source is the default one, and which there are besides those in files."""
        section = _MAIN
        for place, line in _lines(file):
            if (title := _SECTION.fullmatch(line)) is not None:
                section = title[1]
                if section != _MAIN:
                    self._asked.setdefault(section, place)
            elif section == _MAIN and (option := _OPTION.fullmatch(line)) is not None:
                self._read_option(option[1], option[2].strip(), PurePath(file.name).parent, place)

    def _read_option(self, name: str, text: str, home: PurePath, place: Place) -> None:
        if name == "default":
            self.default = text
            return
        for folder in text.split():
            if not folder.startswith(_HOME) and PurePath(folder).parent != home:
                what = f"{name}: the folder {folder} was not read"
                self._remarks.add(RemarkSort.NOTE, what, place, do="name it too, if it is meant")

    def _add(self, source: str, group: Leaf, nodes: Leaf | None) -> None:
        groups = self.texts.setdefault(source, {})
        if nodes is None:
            what = f"group {GroupName(source, group.text)}: it is not a node-set"
            self._remarks.add(RemarkSort.LEFT_OUT, what, group.place)
        elif group.text in groups:
            what = f"group {GroupName(source, group.text)} is there twice; both were joined"
            self._remarks.add(RemarkSort.TWICE, what, group.place)
            texts = filter(str.strip, (groups[group.text].text, nodes.text))
            groups[group.text] = Leaf(",".join(texts), quoted=True, place=group.place)
        else:
            groups[group.text] = Leaf(nodes.text, quoted=True, place=group.place)


def _node_set(tree: Tree) -> Leaf | None:
    """The text of a node-set, or of several in a list; nothing written is an empty one."""
    match tree:
        case Leaf() if tree.empty:
            return Leaf("", quoted=True, place=tree.place)
        case Leaf():
            return tree
        case Series(items):
            texts = [_node_set(one) for one in items]
            if None in texts:
                return None
            joined = ",".join(one.text for one in texts if one is not None and one.text.strip())
            return Leaf(joined, quoted=True, place=tree.place)
        case Branch():
            return None


def _lines(file: SiteFile) -> Iterator[tuple[Place, str]]:
    """What stands in each line; those that go on from the one before are not shown."""
    for number, line in enumerate(file.text.splitlines(), start=1):
        if line.strip() and not line[0].isspace() and line[0] not in "#;":
            yield Place(file.name, number, 1), line.rstrip()
