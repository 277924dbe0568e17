"""The JSON Schema of site files, for editors: made of what the code reads them by."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, Final

import msgspec

from haptera.kinds import (
    backend,
    group,
    health,
    image,
    module,
    pool,
    roll,
    service,
)
from haptera.kinds.declared.kind import KindTerms
from haptera.kinds.extensions import node_kind
from haptera.kinds.rules import health_rule, health_score, power_cap
from haptera.lab.settings import LabSettings
from haptera.model.declared.schema import Applied, Attribute, Kind, Plain, Variable
from haptera.model.parts import Context
from haptera.model.walltime import parse_duration_ms
from haptera.modules import BUNDLED
from haptera.modules.declared.terms import Declaration
from haptera.site.model.kinds import KIND_TERMS
from haptera.site.model.modules import PLACE
from haptera.site.model.rules import BUDGETS, POLICIES, SCOPE, RuleForm

Schema = dict[str, Any]

# All values are texts as they are written, whatever they look like.
_TEXT: Final[Schema] = {"type": ["string", "number", "boolean"]}
_NULL: Final[Schema] = {"type": "null"}
_TEMPLATE: Final[Schema] = {"type": "string", "pattern": r"[{}]"}
_NAME: Final = r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$"
_DURATION: Final = r"^[0-9]{1,12}(ms|s|m|h|d)$"
_PLACE: Final = f"^{PLACE.pattern}$"
# The three ways to name a module of one's own: one of these.
_ONE_OF: Final = ("place", "exec", "declares")
# What is desired of them stands under KIND:NAME.
_OF_CLUSTER: Final = (
    *(image.kind, group.kind, pool.kind, backend.kind, roll.kind),
    *(health.kind, health_rule.kind, health_score.kind, power_cap.kind),
)


def schema() -> Schema:
    """The whole schema; what a site file says beyond its shape, `haptera check` knows."""
    # As JSON has it: defaults are lists there, no tuples.
    shapes = (LabSettings, KindTerms, Declaration)
    made = msgspec.json.schema_components(shapes, ref_template="#/$defs/{name}")
    (settings, kind, _), lab = msgspec.json.decode(msgspec.json.encode(made))
    # The site says it under `kinds`.
    del lab[Declaration.__name__]["properties"][KIND_TERMS]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A site file of haptera: the desired state of a cluster, or a part of it",
        **_mapping(
            {
                "cluster": {"type": "string", "pattern": _NAME, "description": "Its name."},
                "include": _one_or_list("Other files or folders of the same site."),
                "kinds": _named(kind, "Kinds that the modules of the site declare."),
                "groups": _named(_nodeset(), "Names of node-sets: @NAME."),
                "defaults": _ref("layer", "Values of all nodes that have no value of their own."),
                "profiles": _named(_ref("layer"), "Values of the nodes that name the profile."),
                "nodes": _named(_ref("node"), "Node-sets, each with attributes."),
                "fault_groups": _named(_nodeset(), "Nodes that may fail together."),
                "services": _named(_ref("service_data"), "Services, each with its data."),
                "entities": _entities(),
                "desired": _desired(),
                "policies": _rules(
                    "policy", "How parts are tried, for entities that a selector matches."
                ),
                "budgets": _rules("budget", "How many entities may be disrupted at once."),
                "modules": _modules(),
                "controllers": _named(_ref("controller"), "Your own controllers."),
                "lab": {"description": "How virtual nodes behave.", "anyOf": [settings, _NULL]},
            }
        ),
        "$defs": {**_defs(), **lab},
    }


def _defs() -> Schema:
    profiles = _one_or_list("Names of profiles; a later one outranks an earlier.")
    attributes = {one.name: _attribute(one) for one in node_kind().attributes}
    return {
        "node": _mapping({"profiles": profiles, **attributes}),
        "node_attributes": _mapping(attributes),
        "node_desired": _mapping(_desirable(node_kind())),
        "service_data": _mapping({one.name: _plain(one) for one in service.kind.plain}),
        "service_desired": _mapping(_desirable(service.kind)),
        "module_desired": _mapping(_desirable(module.kind)),
        **{f"{kind.name}_desired": _mapping(_desirable(kind)) for kind in _OF_CLUSTER},
        "module_terms": _mapping(_terms()),
        "own_module": _own_module(),
        "layer": _mapping(
            {
                "attributes": _ref("node_attributes"),
                "desired": _ref("node_desired"),
                "services": _named(_ref("service_desired")),
                "modules": _named(_ref("module_terms")),
            }
        ),
        "policy": _rule(POLICIES),
        "budget": _rule(BUDGETS),
        "controller": {
            **_mapping({"place": {"type": "string", "pattern": _PLACE}, "settings": _object()}),
            # One that comes with haptera needs no place.
            "type": "object",
        },
    }


def _desirable(kind: Kind) -> Mapping[str, Schema]:
    """All that a mapping below `desired` may say of entities of this kind."""
    variables = {one.name: _variable(one) for one in kind.variables if one.values is not Applied}
    return variables | {one.name: _plain(one) for one in kind.plain}


def _variable(variable: Variable[Any]) -> Schema:
    values = [str(one) for one in variable.values if one is not variable.unknown]
    return {"anyOf": [{"enum": values}, _TEMPLATE]}


def _attribute(attribute: Attribute) -> Schema:
    return {**_TEXT, "description": f"At most {attribute.size_bytes_max} bytes."}


def _plain(plain: Plain) -> Schema:
    if plain == service.ready:
        ways = {one.value: {"type": ["string", "integer"]} for one in service.Way}
        mapping = {**_mapping(ways), "minProperties": 1, "maxProperties": 1}
        return {"anyOf": [_TEXT, mapping]}
    if plain.type is str:
        return {**_TEXT, "description": f"At most {plain.size_bytes_max} bytes."}
    number = {"type": "string", "pattern": r"^-?[0-9]+$|[{}]"}
    return {"anyOf": [{"type": "integer"}, number]}


def _terms() -> Mapping[str, Schema]:
    """What is said of a module where it is named."""
    return {
        "enabled": {"type": "boolean"},
        "version": _TEXT,
        "settings": _object("Passed to the module when it connects."),
    }


def _desired() -> Schema:
    return {
        "description": "What should be: NODESET, SERVICE@NODESET, KIND:NAME@NODESET, KIND:NAME.",
        "type": ["object", "null"],
        "patternProperties": {
            "^module:": _ref("module_desired"),
            **{f"^{kind.name}:": _ref(f"{kind.name}_desired") for kind in _OF_CLUSTER},
            "^(service:)?[A-Za-z0-9._-]+@": _ref("service_desired"),
            f"^(?!(module|service|node|{'|'.join(kind.name for kind in _OF_CLUSTER)}):)"
            "[A-Za-z0-9._-]+:": _object("An entity of a kind of a package or of the site."),
        },
        "additionalProperties": _ref("node_desired"),
    }


def _entities() -> Schema:
    named = "^[A-Za-z0-9._-]+:"
    return {
        "description": "Entities besides nodes, with attributes: KIND:NAMES, KIND:NAME@NODESET.",
        "type": ["object", "null"],
        "additionalProperties": False,
        "patternProperties": {named: {"type": ["object", "null"], "additionalProperties": _TEXT}},
    }


def _rules(name: str, description: str) -> Schema:
    return {
        "description": description,
        "anyOf": [
            {"type": "array", "items": _ref(name)},
            {**_named(_ref(name)), "propertyNames": {"pattern": _NAME}},
        ],
    }


def _rule(form: RuleForm) -> Schema:
    says = [key for key in form.keys if key not in SCOPE]
    return {
        **_mapping({key: _rule_value(plain, read) for key, (plain, read) in form.keys.items()}),
        "type": "object",
        "required": list(form.needed),
        "anyOf": [{"required": [key]} for key in says],
    }


def _rule_value(plain: Plain, read: object) -> Schema:
    if read is parse_duration_ms:
        return {"type": "string", "pattern": _DURATION}
    if plain.type is int:
        return {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^[0-9]+%?$"}]}
    return _TEXT


def _modules() -> Schema:
    bundled = sorted(BUNDLED)
    return {
        "description": "The modules, and the desired state of each.",
        "anyOf": [
            {"type": "array", "items": {"enum": bundled}, "uniqueItems": True},
            {
                "type": "object",
                "properties": dict.fromkeys(bundled, _ref("module_terms")),
                "additionalProperties": _ref("own_module"),
                "propertyNames": {"pattern": _NAME},
            },
        ],
    }


def _own_module() -> Schema:
    place = {"type": "string", "pattern": _PLACE, "description": "MODULE:ATTRIBUTE"}
    command = _one_or_list("The words of a command that speaks the frames of docs/reference.")
    context = {"enum": list(Context), "description": "Where it runs: self is each node."}
    return {
        **_mapping(
            {
                "place": place,
                "exec": command,
                "context": context,
                "declares": _ref(Declaration.__name__, "What it asks of an API or of programs."),
                **_terms(),
            }
        ),
        "type": "object",
        "required": ["context"],
        # One without any is brought by an installed package.
        "not": {"anyOf": [{"required": [*two]} for two in combinations(_ONE_OF, 2)]},
    }


def _named(inner: Schema, description: str | None = None) -> Schema:
    """A mapping with any names."""
    told = {} if description is None else {"description": description}
    return {**told, "type": ["object", "null"], "additionalProperties": inner}


def _mapping(keys: Mapping[str, Schema]) -> Schema:
    """A mapping with some of these keys; nothing written is an empty one."""
    return {"type": ["object", "null"], "properties": dict(keys), "additionalProperties": False}


def _object(description: str | None = None) -> Schema:
    told = {} if description is None else {"description": description}
    return {**told, "type": "object"}


def _one_or_list(description: str) -> Schema:
    text = {"type": "string"}
    return {"description": description, "anyOf": [text, {"type": "array", "items": text}]}


def _nodeset() -> Schema:
    return {"type": "string", "minLength": 1}


def _ref(name: str, description: str | None = None) -> Schema:
    told = {} if description is None else {"description": description}
    return {**told, "$ref": f"#/$defs/{name}"}
