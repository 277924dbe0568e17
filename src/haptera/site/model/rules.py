"""The `policies` and `budgets` of a site file: rules for all that a selector names."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from haptera.core.modules.module_parts import BY
from haptera.core.sync import presence
from haptera.kinds.meaning import check_selector
from haptera.kinds.rules import budget, policy
from haptera.model.declared.desired_check import check_plain, did_you_mean, nearest
from haptera.model.declared.schema import Kind, Plain
from haptera.model.entity import EntityId, check_name
from haptera.model.errors import Code, HapteraError, ParseError, UnknownNameError
from haptera.model.walltime import parse_duration_ms
from haptera.modules import BUNDLED
from haptera.selectors.names import EVERY, nearest_name
from haptera.selectors.nodeset import fold
from haptera.selectors.selector import Selector, parse_selector
from haptera.selectors.selector_ast import Pattern, parts_of
from haptera.site.syntax.tree import Branch, Errors, Leaf, Place, Series, Tree, leaf

Rule = tuple[EntityId, dict[str, str | int]]
Read = Callable[[str], str | int]

# What a rule is for, rather than what it says of that.
SCOPE: Final = ("for", "parts", "per")


@dataclass(frozen=True, slots=True)
class There:
    """What rules may name: nodes, groups, and modules besides those that come with haptera."""

    nodes: Collection[str]
    groups: Collection[str]
    modules: Collection[str]


@dataclass(frozen=True, slots=True)
class RuleForm:
    """How the rules of one kind are written: each key with its plain datum, and how it is read.

    The `needed` keys are there in each rule. Where the kind has a `rank`, later rules rank higher.
    """

    kind: Kind
    keys: Mapping[str, tuple[Plain, Read]]
    needed: tuple[str, ...]
    rank: Plain | None = None


def _percent(text: str) -> str:
    return text.removesuffix("%")


POLICIES: Final = RuleForm(
    policy.kind,
    {
        "for": (policy.of, str),
        "parts": (policy.parts, str),
        "attempts": (policy.attempts, str),
        "back_off": (policy.backoff_ms, parse_duration_ms),
        "back_off_max": (policy.backoff_ms_max, parse_duration_ms),
        "cool_down": (policy.cool_down_ms, parse_duration_ms),
        "within": (policy.within_ms, parse_duration_ms),
        "fails_to": (policy.fails_to, str),
    },
    needed=("for",),
    rank=policy.rank,
)
BUDGETS: Final = RuleForm(
    budget.kind,
    {
        "for": (budget.of, str),
        "per": (budget.per, str),
        "at_once": (budget.at_once, str),
        "share": (budget.share, _percent),
        "per_hour": (budget.per_hour, str),
    },
    needed=("per",),
)


def read_rules(tree: Tree | None, form: RuleForm, there: There, errors: Errors) -> Iterator[Rule]:
    """The rules of a list, or of a mapping by name; what they name must be there."""
    for rank, (name, place, rule) in enumerate(_named(tree, errors), start=1):
        with errors.at(place):
            check_name(name)
            values = dict(_values(rule, form, there, errors))
            if form.rank is not None:
                values[form.rank.name] = rank
            yield EntityId(form.kind.name, name, None), values


def _named(tree: Tree | None, errors: Errors) -> Iterator[tuple[str, Place, Tree]]:
    """Each rule with its name: that of a list's first is `site-1`."""
    match tree:
        case Branch(entries):
            yield from ((key.text, key.place, rule) for key, rule in entries)
        case Series(items):
            for number, rule in enumerate(items, start=1):
                yield f"site-{number}", rule.place, rule
        case Leaf() if not tree.empty:
            errors.add(
                ParseError("a list is expected here", do="write `- for: SELECTOR` below"),
                tree.place,
            )
        case _:
            pass  # nothing is written


def _values(
    rule: Tree, form: RuleForm, there: There, errors: Errors
) -> Iterator[tuple[str, str | int]]:
    if not isinstance(rule, Branch):
        raise ParseError(f"a {form.kind.name} is a mapping", do="write `for: SELECTOR` below")
    keys = [key.text for key, _ in rule.entries]
    for needed in form.needed:
        if needed not in keys:
            what = f"this {form.kind.name} does not say {needed!r}"
            errors.add(HapteraError(what, do=f"write `{needed}: …`"), rule.place)
    says = [key for key in form.keys if key not in SCOPE]
    if not set(keys) & set(says):
        what = f"this {form.kind.name} has no effect: it sets no value"
        errors.add(HapteraError(what, do=f"write one of {', '.join(says)}"), rule.place)
    for key, tree in rule.entries:
        with errors.at(key.place):
            if key.text not in form.keys:
                what = f"a {form.kind.name} has no {key.text!r}"
                raise UnknownNameError(what, do=nearest(key.text, form.keys))
            with errors.at(tree.place):
                plain, read = form.keys[key.text]
                value = check_plain(plain, read(leaf(tree).text))
                if key.text == "for":
                    _check_named(check_selector(parse_selector(str(value))), there)
                if key.text == "parts":
                    _check_module(str(value), there.modules)
                yield plain.name, value


def _check_module(parts: str, modules: Collection[str]) -> None:
    """Of a part's name, the module; its parts are known where the modules are."""
    known = {*BUNDLED, presence.MODULE, BY, *modules}
    if (module := parts.partition(".")[0]) not in known:
        raise UnknownNameError(f"there is no module {module!r}", do=nearest(module, known))


def _check_named(selector: Selector, there: There) -> None:
    """Groups, and nodes that are named one by one, must be there; a pattern may find none yet."""
    for part in parts_of(selector.choice):
        named = part.on if isinstance(part, Pattern) else None
        if named is None:
            continue
        for group in named.groups:
            if group.source is None and group.name not in {EVERY, *there.groups}:
                do = nearest(group.name, there.groups)
                raise UnknownNameError(f"there is no group {group.name!r}", do=do)
        members = named.members() if named.plain else ()
        if missing := [one.name for one in members if one.name not in there.nodes]:
            do = f"{did_you_mean(nearest_name(missing[0], there.nodes))}declare it under `nodes`"
            raise HapteraError(f"no such node: {fold(missing)}", do=do, code=Code.SELECTS_NOTHING)
