"""The catalog: kinds, and the parts of all modules, compiled per class."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from haptera.core.modules.module_parts import MANIFEST as SUPERVISE
from haptera.core.modules.plans import KnownPlans
from haptera.core.modules.relations import check_relations, check_sides
from haptera.core.state.allowance import TurnAllowance
from haptera.core.state.row import EntityState
from haptera.core.sync import presence
from haptera.kinds import module
from haptera.lint.refusal import refuse, refusing
from haptera.model.declared.packing import kind_digest
from haptera.model.declared.remote_schema import ModuleSum, OwnSchema, PlannedKind, sums_of
from haptera.model.declared.schema import Kind
from haptera.model.errors import Code, HapteraError
from haptera.model.parts import Context, Look, Manifest, Part, Step
from haptera.planner.domain.domain import Domain, compiling_class
from haptera.planner.domain.pieces import Pieces, at_once
from haptera.planner.domain.problem import check, problem_of
from haptera.planner.search.search_budget import WORK_MAX

# Steps and outcomes of looks of one kind, over all modules: compiling so many takes some 20 ms.
MOVES_MAX: Final = 1_024
# Work, in moves tried: checking a part.
CHECKING: Final = 200

# A kind, and those attributes of an entity that parts of the kind mention.
Class = tuple[str, tuple[tuple[str, str], ...]]


class Catalog:
    """Kinds, fixed for an engine's life, and manifests, which may be replaced by new ones.

    `work_max` is what the answer to one question may cost here.

    Raises:
        HapteraError: a module serves a kind that is not there, or its parts are malformed
            or such that knowledge cannot hold.
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        manifests: Iterable[Manifest],
        work_max: int = WORK_MAX,
    ) -> None:
        self.kinds = kinds
        # What some kind borrows of the node that its entities are on.
        self.borrowed = frozenset(one.name for kind in kinds.values() for one in kind.borrows)
        # Kinds that others are related to.
        self.related = check_relations(kinds)
        self.plans = KnownPlans(work_max)
        self._parts: dict[str, list[Part]] = {}
        # Parts of kinds that have passed all checks, if they are not planned with yet.
        self._fit: dict[str, list[Part]] = {}
        self._domains: dict[Class, Domain] = {}
        self._compiling: dict[Class, Pieces[Domain]] = {}
        self.manifests: dict[str, Manifest] = {}
        self.sums: dict[str, ModuleSum] = {}
        self._planned: dict[str, PlannedKind] = {}
        self._declare({one.name: one for one in (*own_manifests(kinds), *manifests)})

    def replace(self, manifest: Manifest) -> None:
        """Plan with this in place of what the module declared so far.

        Raises:
            HapteraError: it cannot be planned with, and nothing has changed.
        """
        old = self.manifests[manifest.name]
        if manifest.context is not old.context:
            raise HapteraError(
                f"runs at {manifest.context}, not {old.context}", code=Code.INVALID_MODULE
            )
        if manifest.gate is not old.gate:
            raise HapteraError(
                "is a gate in one version and not in the other",
                do="restart haptera",
                code=Code.INVALID_MODULE,
            )
        # What a process may do was granted when its daemon started, and no process widens it.
        if not (set(manifest.needs) <= {*old.needs} and set(manifest.writes) <= {*old.writes}):
            raise HapteraError("needs more than it did before", do="start haptera anew")
        self._declare({**self.manifests, manifest.name: manifest})

    def judge(self, manifest: Manifest) -> Pieces[None]:
        """Find out whether `replace` would plan with this.

        Raises:
            HapteraError: it would not.
        """
        for name, parts in self._by_kind({**self.manifests, manifest.name: manifest}).items():
            if parts != self._fit.get(name):
                _check(self.kinds[name], parts)
                yield CHECKING * len(parts)
                yield from refusing(self.kinds[name], parts)
                self._fit[name] = parts

    def exclusive(self, module: str) -> bool:
        """Whether no two processes of this module run beside each other."""
        return module in self.manifests and self.manifests[module].exclusive

    @property
    def schema(self) -> OwnSchema:
        """What neighbours compare with theirs."""
        return OwnSchema(self.sums, self._planned)

    def parts(self) -> list[Part]:
        """All declared parts."""
        return [part for manifest in self.manifests.values() for part in manifest.parts]

    def step(self, module: str, name: str) -> Step | None:
        manifest = self.manifests.get(module)
        steps = () if manifest is None else manifest.steps
        return next((step for step in steps if step.name == name), None)

    def late_ms(self, context: Context) -> int:
        """The longest that a disruptive step may take where it runs, late effects included."""
        steps = (one for one in self.parts() if isinstance(one, Step) and one.context is context)
        return max((one.within_ms + one.late_ms for one in steps if one.disruptive), default=0)

    def looks(self) -> list[Look]:
        """All looks, of any class."""
        return [part for part in self.parts() if isinstance(part, Look)]

    def looked_at(self, context: Context) -> set[tuple[str, str]]:
        """Kind and variable of all that is looked at in this context."""
        return {(look.kind, look.at) for look in self.looks() if look.context is context}

    def modules(self, context: Context) -> list[str]:
        """The modules whose processes run in this context."""
        return sorted(
            one.name
            for one in self.manifests.values()
            if one.context is context and one not in own_manifests(self.kinds)
        )

    def controllers(self) -> list[str]:
        """The modules that are not called, but ask."""
        return sorted(one.name for one in self.manifests.values() if one.controller)

    def from_the_start(self) -> list[str]:
        """The modules that run though nobody asks for a part of theirs: they ask, or measure."""
        measuring = [one.name for one in self.manifests.values() if one.samplers]
        return sorted({*self.controllers(), *measuring})

    def gates(self, context: Context) -> list[str]:
        """The modules in this context that can keep work from their node."""
        return [one for one in self.modules(context) if self.manifests[one].gate]

    def domain(self, row: EntityState, node: EntityState | None) -> Domain:
        """The compiled class of an entity, by the attributes that parts of its kind mention."""
        key = self._class(row, node)
        if key not in self._domains:
            at_once(self._compiled(key, row.kind))
        return self._domains[key]

    def compiling(self, row: EntityState, node: EntityState | None) -> Pieces[Domain]:
        """The same in pieces: of a class that is compiled already there are none."""
        return self._compiled(self._class(row, node), row.kind)

    def has_compiled(
        self, row: EntityState, node: EntityState | None, allowance: TurnAllowance
    ) -> bool:
        """Whether the class of an entity is compiled by now, which goes on while there is time."""
        key = self._class(row, node)
        while key not in self._domains and allowance.has_time:
            allowance.spend(self._compile(key, row.kind))
        return key in self._domains

    def _compiled(self, key: Class, kind: Kind) -> Pieces[Domain]:
        while key not in self._domains:
            yield self._compile(key, kind)
        return self._domains[key]

    def _compile(self, key: Class, kind: Kind) -> int:
        """Do the next piece of a class; what that has cost."""
        if key not in self._compiling:
            problem = problem_of(kind, self._parts[kind.name], dict(key[1]))
            self._compiling[key] = compiling_class(presence.heard_alone(problem))
        try:
            return next(self._compiling[key])
        except StopIteration as done:
            self._domains[key] = done.value
            del self._compiling[key]
            return 0

    def _declare(self, manifests: dict[str, Manifest]) -> None:
        """Plan with these; what was compiled and planned of kinds with the same parts is kept."""
        by_kind = self._by_kind(manifests)
        for name, parts in by_kind.items():
            if parts != self._fit.get(name):
                _check(self.kinds[name], parts)
                refuse(self.kinds[name], parts)
        self._fit = dict(by_kind)
        kept = {name for name, parts in by_kind.items() if parts == self._parts.get(name)}
        self._domains = {key: one for key, one in self._domains.items() if key[0] in kept}
        self._compiling = {}
        self.plans.keep(set(self._domains.values()))
        self._sum(manifests, {name: by_kind[name] for name in by_kind if name not in kept})
        self.manifests, self._parts = manifests, by_kind
        # The parts that nodes run themselves, by path.
        self.on_nodes = frozenset(one.path for one in self.parts() if one.context is Context.SELF)
        self._mentioned = {name: _mentioned(parts) for name, parts in by_kind.items()}

    def _sum(self, manifests: Mapping[str, Manifest], by_kind: Mapping[str, list[Part]]) -> None:
        """Sum up what is not declared as it was: this takes longer than to compare it."""
        new = [one for name, one in manifests.items() if one != self.manifests.get(name)]
        self.sums = {**self.sums, **sums_of(new)}
        self._planned |= {
            name: PlannedKind(
                kind_digest(self.kinds[name], parts), tuple(sorted({one.module for one in parts}))
            )
            for name, parts in by_kind.items()
        }

    def _by_kind(self, manifests: Mapping[str, Manifest]) -> dict[str, list[Part]]:
        by_kind: dict[str, list[Part]] = {name: [] for name in self.kinds}
        for manifest in manifests.values():
            for part in manifest.parts:
                if part.kind not in self.kinds:
                    raise HapteraError(
                        f"serves kind {part.kind!r}, which is not declared",
                        where=f"module {manifest.name}",
                        code=Code.INVALID_MODULE,
                    )
                by_kind[part.kind].append(part)
        return by_kind

    def _class(self, row: EntityState, node: EntityState | None) -> Class:
        values = attributes(row, node)
        mentioned = self._mentioned[row.kind.name]
        return row.kind.name, tuple((one, values[one]) for one in mentioned if one in values)


def _check(kind: Kind, parts: Collection[Part]) -> None:
    """Refuse what is malformed, or too much."""
    check(problem_of(kind, parts, {}))
    check_sides(kind, parts)
    count = sum(len(one.outcomes) if isinstance(one, Look) else 1 for one in parts)
    if count > MOVES_MAX:
        raise HapteraError(
            f"has {count} steps and outcomes of looks; the planner takes at most {MOVES_MAX}",
            where=f"kind {kind.name}",
            do="declare fewer parts, or split the kind in two",
            code=Code.LIMIT,
        )


def attributes(row: EntityState, node: EntityState | None) -> dict[str, str]:
    """An entity's own attributes, and its node's under `node.NAME`; nobody may change them."""
    if node is None or node is row:
        return row.desired.attributes
    return row.desired.attributes | {
        f"node.{name}": value for name, value in node.desired.attributes.items()
    }


def own_manifests(kinds: Mapping[str, Kind]) -> tuple[Manifest, ...]:
    """What the core itself serves, of kinds that are there."""
    return (presence.MANIFEST, *((SUPERVISE,) if module.kind.name in kinds else ()))


def _mentioned(parts: Iterable[Part]) -> tuple[str, ...]:
    conditions = [one for part in parts for one in (*part.requires, *part.excludes)]
    return tuple(sorted({one.name for one in conditions}))
