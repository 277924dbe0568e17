"""An entity as a selector sees it, from what is told of it: plainer than the core's own way."""

from dataclasses import dataclass

from haptera.kinds import KINDS
from haptera.model.entity import EntityId
from haptera.selectors.selector_ast import NEVER_MS


@dataclass(frozen=True)
class ViewSubject:
    """One view, and the views of all nodes by name."""

    view: object
    nodes: dict

    @property
    def id(self):
        return EntityId(self.view.kind, self.view.name, self.view.node)

    def value(self, datum):
        view = self._of(datum)
        if view is None:
            return None
        kind = KINDS[view.kind]
        variables = {one.name for one in kind.variables}
        plain = {one.name for one in kind.plain}
        attributes = {one.name for one in kind.attributes}
        desired = str(view.desired[datum.name].value) if datum.name in view.desired else ""
        seen = view.observed.get(datum.name)
        table = {
            "": [
                (variables, seen.value if seen is not None and seen.known else "unknown"),
                (plain, desired),
                (attributes, view.attributes.get(datum.name, "")),
                ({"condition"}, view.condition.value),
            ],
            "desired": [(variables, desired), (plain, desired)],
            "last": [(variables, "unknown" if seen is None else seen.value)],
        }
        return next((value for names, value in table[datum.layer] if datum.name in names), None)

    def age_ms(self, datum):
        view = self._of(datum)
        if view is None or datum.layer:
            return None
        if datum.name == "condition":
            return view.since_ms
        if datum.name not in {one.name for one in KINDS[view.kind].variables}:
            return None
        return view.observed[datum.name].age_ms if datum.name in view.observed else NEVER_MS

    def measured(self, series):
        return None

    def groups(self, group):
        def is_in(attributes):
            if group.source is None:
                named = attributes.get("groups", "").replace(",", " ").split()
                return group.name == "*" or group.name in named
            return attributes.get(group.source, "") != "" and group.name in (
                "*",
                attributes[group.source],
            )

        return {name for name, view in self.nodes.items() if is_in(view.attributes)}

    def _of(self, datum):
        if datum.kind is None or datum.kind == self.view.kind:
            return self.view
        return self.nodes.get(self.view.node) if datum.kind == "node" else None
