"""What was found, as the text of a site file."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from haptera.kinds import node
from haptera.model.errors import LimitError
from haptera.selectors.nodeset import NODESET_BYTES_MAX, fold, natural
from haptera.site.imports.found import FoundNode, FoundSite
from haptera.site.imports.patterns import templates
from haptera.site.imports.remarks import RemarkSort
from haptera.site.model.groups import EXPANDED_MAX
from haptera.site.model.nodes import PROFILES
from haptera.site.syntax.sources import SITE_BYTES_MAX
from haptera.site.syntax.yaml_text import alike, folded, titled, yaml_key, yaml_value

CLUSTER: Final = "imported"

_A_PART: Final = "import a part of the nodes, or fewer groups and attributes"

# A name, and its value as YAML.
_Fact = tuple[str, str]


def site_text(found: FoundSite, cluster: str) -> str:
    """A site file that declares all that was found; the same is written the same way each time.

    Raises:
        HapteraError: there is more of it than a site may have.
    """
    groups = {name: fold(nodes) for name, nodes in found.groups.items()}
    short = {name: text for name, text in groups.items() if len(text) <= NODESET_BYTES_MAX}
    nodes = alike(_facts(found, groups.keys() - short.keys()))
    desired = alike({name: _desired(one) for name, one in found.nodes.items() if one.desired})
    _check_size([*found.groups.values(), *nodes, *desired])
    text = "\n".join(
        [
            *_head(found),
            f"cluster: {yaml_key(cluster)}",
            *titled("groups", _pairs(short)),
            *titled("profiles", [f"{yaml_key(name)}: {{}}" for name in found.profiles]),
            *titled("nodes", _lines(nodes)),
            *titled("desired", _lines(desired)),
            "",
        ]
    )
    if len(text.encode()) > SITE_BYTES_MAX:
        raise LimitError(f"the site would take more than {SITE_BYTES_MAX} bytes", do=_A_PART)
    return text


def _check_size(sets: Iterable[Sequence[str]]) -> None:
    """That node-sets name no more nodes than those of a site may, each as often as it stands."""
    if sum(map(len, sets)) > EXPANDED_MAX:
        what = f"the node-sets of the site would name more than {EXPANDED_MAX} nodes"
        raise LimitError(what, do=_A_PART)


def _facts(found: FoundSite, beside: Collection[str]) -> dict[str, list[_Fact]]:
    """What is said of each node; the groups that are not there as node-sets are said, too."""
    facts: dict[str, list[_Fact]] = {name: [] for name in found.nodes}
    for attribute in sorted({name for one in found.nodes.values() for name in one.attributes}):
        having = {
            name: one.attributes[attribute]
            for name, one in found.nodes.items()
            if attribute in one.attributes
        }
        for name, template in templates(having).items():
            facts[name].append((attribute, yaml_value(template)))
    joined: dict[str, list[str]] = {}
    for group in sorted(beside):
        for name in found.groups[group]:
            joined.setdefault(name, []).append(group)
    for name, names in joined.items():
        facts[name].append((node.groups.name, yaml_value(", ".join(names))))
    for name, one in found.nodes.items():
        if one.profiles:
            facts[name].append((PROFILES, f"[{', '.join(map(yaml_key, one.profiles))}]"))
    return facts


def _desired(one: FoundNode) -> list[_Fact]:
    return [(variable, yaml_value(value)) for variable, value in one.desired.items()]


def _head(found: FoundSite) -> Iterator[str]:
    if not any(one.desired for one in found.nodes.values()):
        yield "# Nothing is desired here: haptera looks at these nodes, and changes nothing."
    secrets = [one for one in found.remarks if one.sort is RemarkSort.SECRET]
    if secrets:
        yield "# Secrets are not in this file; `haptera secret set NAME` keeps them."


def _pairs(texts: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(texts, key=natural):
        yield f"{yaml_key(name)}: {yaml_value(texts[name])}"


def _lines(facts: Mapping[tuple[str, ...], list[_Fact]]) -> Iterator[str]:
    """A line for each node-set that is said the same of."""
    found: dict[str, list[_Fact]] = {}
    for nodes, some in facts.items():
        for text in folded(nodes):
            found.setdefault(text, []).extend(some)
    for text in sorted(found, key=natural):
        pairs = ", ".join(f"{name}: {value}" for name, value in sorted(found[text]))
        yield f"{yaml_key(text)}: {{{pairs}}}"
