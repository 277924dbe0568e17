"""Proposals of what would be run: refused where their author may not have it run."""

import msgspec
import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.kinds import KINDS, module, node
from haptera.model.changes import Author, Cause, Change, Declare, SetDesired, Stored, UnsetDesired
from haptera.model.declared.meaning import Meaning
from haptera.model.declared.schema import Attribute, Extension, extend
from haptera.model.effects import Reply, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Proposed, Written
from haptera.model.parts import Context, Manifest, Setting, SettingType
from haptera.model.token_scope import Scope
from tests.core.scenario import SIDE

N1 = node_id("n1")
STRIP, SILENT = (EntityId("module", name, None) for name in ("strip", "silent"))
SETTINGS = (
    Setting("port", SettingType.INTEGER),
    Setting("strips", code=("*.program", "*.words.*")),
)
HOOK = Attribute("node", "strip.hook", meaning=Meaning.PROGRAM_PATH)
EVE = Author("user:eve", may=Scope.WRITE)


def engine(*stored: Change) -> Engine:
    kinds = {**KINDS, "node": extend(node.kind, [Extension("strip", attributes=(HOOK,))])}
    strip = Manifest("strip", "1", Context.PARENT, (), (), settings=SETTINGS)
    silent = Manifest("silent", "1", Context.PARENT, (), ())
    made = Engine(SIDE, Catalog(kinds, [strip, silent]), Stored(1, 0, [], [], {}), 0, now=S)
    made.handle((), S)  # it tells of its modules
    if stored:
        (write,) = made.handle((Proposed(1, stored),), S)
        assert isinstance(write, Write)
        made.handle((Written(write.ticket, len(write.changes)),), S)
    return made


def given(entity: EntityId, settings: object) -> Change:
    text = msgspec.json.encode(settings).decode()
    return SetDesired(entity, module.settings.name, text, "user:eve")


def asked(made: Engine, author: Author | None, *changes: Change) -> str | None:
    """Why it is refused; None where it is on its way to the disk."""
    (effect,) = made.handle((Proposed(7, changes, None, author),), S)
    if isinstance(effect, Write):
        return None
    assert isinstance(effect, Reply)
    assert (effect.revision, effect.cause) == (None, Cause.FORBIDDEN), effect
    return effect.refusal


BEFORE = {"strips": {"a": {"program": "/bin/a", "words": ["x", "y"]}}, "port": 1}


@pytest.mark.parametrize(
    ("after", "named"),
    [
        ({**BEFORE, "port": 2}, None),
        ({}, None),
        ({"strips": {"a": {"words": ["x"]}}}, None),
        ({"strips": {"a": {"program": "/bin/b"}}}, "strips.*.program"),
        ({"strips": {"b": {"program": "/bin/a"}}}, "strips.*.program"),
        ({"strips": {"a": {"words": ["y", "x"]}}}, "strips.*.words.*"),
        ({"strips": {"a": {"words": ["y"]}}}, "strips.*.words.*"),
        ({"strips": {"a": {"words": "x"}}}, "strips.*.words.*"),
        ({"strips": "/bin/b"}, "strips.*.program"),
    ],
)
def test_of_settings_what_is_code_at_any_depth_takes_more(after: object, named: str | None) -> None:
    made = engine(given(STRIP, BEFORE))
    told = asked(made, EVE, given(STRIP, after))
    why = f"the setting {named!r} is code: that takes a token of scope admin, and user:eve's allows"
    assert told == (None if named is None else f"module:strip: {why} write")


def test_all_settings_of_a_module_that_does_not_declare_them_may_be_code() -> None:
    told = asked(engine(), EVE, given(SILENT, {"port": 1}))
    assert told is not None
    assert "the setting 'port' may be code, for silent declares no settings" in told
    assert asked(engine(given(SILENT, {"port": 1})), EVE, given(SILENT, {"port": 1})) is None


def test_an_attribute_may_be_code_too() -> None:
    there = Declare(N1, {"strip.hook": "/bin/a", "rack": "1"}, "site")
    other = Declare(N1, {"strip.hook": "/bin/b"}, "site")
    told = asked(engine(there), EVE, other)
    assert told is not None
    assert told.startswith("node:n1: strip.hook is the path of a program: that takes a token of")
    assert asked(engine(there), Author("user:kim", may=Scope.EXEC), other) is None
    for same in ({"strip.hook": "/bin/a", "rack": "2"}, {"rack": "1"}):
        assert asked(engine(there), EVE, Declare(N1, same, "site")) is None


def test_who_does_not_say_what_they_may_have_nothing_run_and_haptera_itself_may() -> None:
    web = EntityId("service", "web", "n1")
    there = (Declare(N1, {}, "site"), Declare(web, {}, "site"))
    command = SetDesired(web, "command", "serve", "site")
    assert asked(engine(*there), Author("site"), command) is not None
    assert asked(engine(*there), None, command) is None
    assert asked(engine(*there, command), EVE, UnsetDesired(web, "command")) is None
    taken = SetDesired(web, "command", "serve", "user:eve")
    assert asked(engine(*there, command), EVE, taken) is None


@pytest.mark.parametrize(
    ("rank", "command", "may"),
    [(0, "serve", True), (64, "serve", False), (0, "serve-b", False), (64, "serve-b", True)],
)
def test_a_controller_has_a_replica_run_what_its_version_of_the_group_was_given(
    rank: int, command: str, may: bool
) -> None:
    ledger, one = EntityId("group", "ledger", None), EntityId("replica", f"ledger.{rank}", "n1")
    there = [Declare(entity, {}, "site") for entity in (N1, ledger, one)]
    given = {"command": "serve", "trial": "serve-b"}
    held = [SetDesired(ledger, key, text, "site") for key, text in given.items()]
    controller = Author("controller:groups", may=Scope.WRITE)

    wanted = SetDesired(one, "command", command, controller.who)

    assert (asked(engine(*there, *held), controller, wanted) is None) == may


def test_who_is_limited_has_nothing_run_beyond_nodes() -> None:
    limited = Author("user:kim", may=Scope.ADMIN, limited=True)
    told = asked(engine(), limited, given(STRIP, BEFORE))
    assert told == (
        "module:strip: the setting 'strips.*.program' is code: that takes a token without a limit"
    )
