"""What a module's author imports, and all of it."""

from typing import Final

from haptera.model.answers.views import Condition, EntityView
from haptera.model.declared.meaning import CodeFile, Command, HostPath, Meaning, ProgramPath
from haptera.model.declared.schema import (
    Applied,
    Attribute,
    Extension,
    Kind,
    Plain,
    Relation,
    Variable,
)
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.model.foreign import Foreign, ForeignError, if_readable, read_foreign
from haptera.model.news import News
from haptera.model.parts import (
    ANY,
    API,
    Context,
    EnrolmentLevel,
    Manifest,
    Privilege,
    Setting,
    SettingType,
)
from haptera.model.policy import Policy
from haptera.model.reading import Reading, Series, item_name
from haptera.sdk.controller import Changes, Cluster, Conflict, Controller
from haptera.sdk.module import Module, Served
from haptera.sdk.sampling.rounds import Measured
from haptera.sdk.settings import Secret
from haptera.sdk.target import Boot, Draining, Refused, Setup, Target
from haptera.sdk.terms import Conditions
from haptera.sdk.uplink import Uplink, uplink
from haptera.selectors.nodeset import expand, fold

PARENT: Final = Context.PARENT
SELF: Final = Context.SELF

__all__ = [
    "ANY",
    "API",
    "PARENT",
    "SELF",
    "Applied",
    "Attribute",
    "Boot",
    "Changes",
    "Cluster",
    "CodeFile",
    "Command",
    "Condition",
    "Conditions",
    "Conflict",
    "Context",
    "Controller",
    "Draining",
    "EnrolmentLevel",
    "EntityId",
    "EntityView",
    "Extension",
    "Foreign",
    "ForeignError",
    "HapteraError",
    "HostPath",
    "Kind",
    "Manifest",
    "Meaning",
    "Measured",
    "Module",
    "News",
    "Plain",
    "Policy",
    "Privilege",
    "ProgramPath",
    "Reading",
    "Refused",
    "Relation",
    "Secret",
    "Series",
    "Served",
    "Setting",
    "SettingType",
    "Setup",
    "Target",
    "Uplink",
    "Variable",
    "expand",
    "fold",
    "if_readable",
    "item_name",
    "read_foreign",
    "uplink",
]
