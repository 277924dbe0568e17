"""The lint's rules for nodes that never have an agent: who could permit, and what needs one."""

from collections.abc import Iterator, Mapping

from haptera.core.modules.catalog import Catalog
from haptera.core.modules.gates import MEND, has_no_agent, never_permits
from haptera.core.state.row import EntityState
from haptera.kinds.node import Agent, agent, kind
from haptera.model.answers.finding import Finding, Rule
from haptera.model.entity import EntityId, node_id
from haptera.selectors.nodeset import fold
from haptera.site.model.site import Site, SiteEntity

Rows = Mapping[EntityId, EntityState]


def lint_permits(site: Site, catalog: Catalog, rows: Rows) -> Iterator[tuple[Finding, SiteEntity]]:
    """Findings on nodes without an agent: what can never be done, or known; each once for all."""
    found: dict[tuple[Rule, str, str, str], list[SiteEntity]] = {}
    for one in site.entities:
        if one.entity.kind == kind.name:
            for told in _of_node(catalog, rows[one.entity]):
                found.setdefault(told, []).append(one)
    for (rule, variable, text, fix), some in found.items():
        place = str(node_id(fold(one.entity.name for one in some)))
        yield Finding(rule, place, text, kind.name, None, variable, fix=fix), some[0]


def _of_node(catalog: Catalog, node: EntityState) -> Iterator[tuple[Rule, str, str, str]]:
    wanted = node.desired.values.get(agent.name)
    if wanted is not None and wanted.value == Agent.UP and has_no_agent(node):
        text = "agent=up can never be known of a node that is declared `has_agent: never`"
        yield Rule.UNKNOWABLE_GOAL, agent.name, text, "remove these desired values, or `has_agent`"
    steps = [one for one in catalog.domain(node, node).steps if one.disruptive]
    changed = {change.variable for step in steps for change in step.changes}
    concerned = sorted(changed & node.desired.values.keys())
    if concerned and never_permits(catalog, node):
        text = f"{steps[0].path} is disruptive, and nobody can permit it: it never runs"
        yield Rule.NEVER_PERMITTED, concerned[0], text, f"give them {MEND}"
