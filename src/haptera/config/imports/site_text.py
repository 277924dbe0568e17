"""What was found, as the text of a site file."""

from collections.abc import Iterator, Mapping
from typing import Final

from haptera.config.imports.found import Found
from haptera.config.imports.patterns import templates
from haptera.config.imports.remarks import Sort
from haptera.config.nodes import PROFILES
from haptera.config.yaml_text import alike, folded, titled, yaml_key, yaml_value
from haptera.kinds import node
from haptera.model.nodeset import NODESET_BYTES_MAX, fold, natural

CLUSTER: Final = "imported"

# A name, and its value as YAML.
_Fact = tuple[str, str]


def site_text(found: Found, cluster: str) -> str:
    """A site file that declares all that was found; the same is written the same way each time."""
    groups = {name: fold(nodes) for name, nodes in found.groups.items()}
    short = {name for name, text in groups.items() if len(text) <= NODESET_BYTES_MAX}
    facts: dict[str, list[_Fact]] = {name: [] for name in found.nodes}
    for attribute in sorted({name for one in found.nodes.values() for name in one.attributes}):
        having = {
            name: one.attributes[attribute]
            for name, one in found.nodes.items()
            if attribute in one.attributes
        }
        for name, template in templates(having).items():
            facts[name].append((attribute, yaml_value(template)))
    for group in sorted(set(groups) - short):
        for name in found.groups[group]:
            facts[name].append((node.groups.name, group))
    for name, one in found.nodes.items():
        facts[name] = _joined(facts[name])
        if one.profiles:
            facts[name].append((PROFILES, f"[{', '.join(map(yaml_key, one.profiles))}]"))
    desired = {
        name: [(variable, yaml_value(value)) for variable, value in one.desired.items()]
        for name, one in found.nodes.items()
        if one.desired
    }
    return "\n".join(
        [
            *_head(found),
            f"cluster: {yaml_key(cluster)}",
            *titled("groups", _pairs({name: groups[name] for name in short})),
            *titled("profiles", [f"{yaml_key(name)}: {{}}" for name in found.profiles]),
            *titled("nodes", _lines(facts)),
            *titled("desired", _lines(desired)),
            "",
        ]
    )


def _head(found: Found) -> Iterator[str]:
    if not any(one.desired for one in found.nodes.values()):
        yield "# Nothing is desired here: haptera looks at these nodes, and changes nothing."
    secrets = [one for one in found.remarks if one.sort is Sort.SECRET]
    if secrets:
        yield "# Secrets are not in this file; `haptera secret set NAME` keeps them."


def _joined(facts: list[_Fact]) -> list[_Fact]:
    """The facts, the groups that a node is in as one of them."""
    groups = [value for name, value in facts if name == node.groups.name]
    others = [one for one in facts if one[0] != node.groups.name]
    return [*others, (node.groups.name, yaml_value(", ".join(groups)))] if groups else facts


def _pairs(texts: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(texts, key=natural):
        yield f"{yaml_key(name)}: {yaml_value(texts[name])}"


def _lines(facts: Mapping[str, list[_Fact]]) -> Iterator[str]:
    """A line for each node-set that is said the same of."""
    found: dict[str, list[_Fact]] = {}
    for nodes, some in alike(facts).items():
        for text in folded(nodes):
            found.setdefault(text, []).extend(some)
    for text in sorted(found, key=natural):
        pairs = ", ".join(f"{name}: {value}" for name, value in sorted(found[text]))
        yield f"{yaml_key(text)}: {{{pairs}}}"
