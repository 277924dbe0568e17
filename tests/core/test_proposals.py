"""Proposals: what of a change is refused before anything of it is written."""

import msgspec
import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.kinds import KINDS, module
from haptera.model.changes import Cause, Change, Declare, SetDesired, Stored
from haptera.model.effects import PlanReply, Reply, Write
from haptera.model.entity import EntityId
from haptera.model.events import Considered, Proposed
from haptera.model.parts import Context, Manifest, Setting, SettingType
from tests.core.scenario import SIDE

STRIP = EntityId("module", "strip", None)
SETTINGS = (Setting("key", SettingType.TEXT, required=True, secret=True), Setting("port"))
TEXT = (
    "module:strip: the setting 'key' is a secret;"
    " keep it by `haptera secret set NAME`, and write {secret: NAME}"
)


def engine() -> Engine:
    manifest = Manifest("strip", "1", Context.PARENT, (), (), settings=SETTINGS)
    made = Engine(SIDE, Catalog(KINDS, [manifest]), Stored(1, 0, [], [], {}), 0, now=S)
    made.handle((), S)  # it tells of its modules
    return made


def given(settings: object) -> tuple[Change, ...]:
    text = msgspec.json.encode(settings).decode()
    return Declare(STRIP, {}, "site"), SetDesired(STRIP, module.settings.name, text, "user:eve")


@pytest.mark.parametrize("key", ["hunter2", "", 1234, ["hunter2"], {"is": "hunter2"}])
def test_a_secret_is_neither_written_nor_planned_with(key: object) -> None:
    changes = given({"port": 1, "key": key})
    assert engine().handle((Proposed(7, changes),), S) == [Reply(7, None, TEXT, Cause.OPEN_SECRET)]
    assert engine().handle((Considered(7, changes),), S) == [
        PlanReply(7, None, TEXT, Cause.OPEN_SECRET)
    ]


@pytest.mark.parametrize(
    "settings", [{"key": {"secret": "strip"}}, {"key": None}, {"port": "hunter2"}, {}]
)
def test_what_is_named_or_no_secret_is_written(settings: object) -> None:
    (effect,) = engine().handle((Proposed(7, given(settings)),), S)
    assert isinstance(effect, Write)
