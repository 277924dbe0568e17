"""Settings with types: declared as a dataclass, told in the manifest, made of what is given."""

import asyncio
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, NewType, NotRequired, TypedDict

import msgspec
import pytest

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.model.declared.secrets import open_secrets
from haptera.model.effects import Start
from haptera.model.errors import HapteraError
from haptera.runtime.processes.ipc import Frame
from haptera.runtime.processes.module_frames import begin_frame, event_of
from haptera.sdk import (
    API,
    Command,
    HostPath,
    Module,
    ProgramPath,
    Secret,
    Setting,
    SettingType,
    Target,
)
from haptera.sdk.host import serve
from haptera.sdk.settings import declared
from haptera.wire.ipc import Frames, encode_frame

WAIT_S = 60
WORD = "hunter-2"


@dataclass(frozen=True)
class Settings:
    password: Secret
    pause_s: float = 1.0
    tries: int = 3
    loud: bool = False
    user: str | None = None
    more: tuple[str, ...] = ()


def outlet(api: int = API) -> Module[Target]:
    module = Module("outlet", connect=lambda target: target, settings=Settings, api=api)
    power = module.serves(node.power)

    @power.look(outcomes=(Power.OFF, Power.ON))
    async def look(target: Target) -> Power:
        settings: Settings = target.settings
        target.note(f"{type(settings).__name__}, {settings.pause_s:g} s, {len(settings.password)}")
        return Power.ON

    return module


def test_the_manifest_tells_each_setting() -> None:
    assert outlet().manifest().settings == (
        Setting("password", SettingType.TEXT, required=True, secret=True),
        Setting("pause_s", SettingType.NUMBER),
        Setting("tries", SettingType.INTEGER),
        Setting("loud", SettingType.BOOLEAN),
        Setting("user", SettingType.TEXT),
        Setting("more"),
    )


def test_what_is_given_becomes_what_is_declared() -> None:
    given = {"password": WORD, "pause_s": 2, "more": ["a"]}

    assert outlet().settings(given) == Settings(Secret(WORD), 2.0, more=("a",))


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({}, "Object missing required field `password`"),
        ({"password": WORD, "pause_s": "two"}, "Expected `float`, got `str` - at `$.pause_s`"),
        ({"password": 7}, "Expected `str`, got `int` - at `$.password`"),
        ({"password": WORD, "paus_s": 2}, "there is no setting 'paus_s'"),
    ],
)
def test_what_does_not_fit_is_refused_without_its_value(given: dict[str, Any], what: str) -> None:
    with pytest.raises(HapteraError) as raised:
        outlet().settings(given)
    assert raised.value.what == what
    assert raised.value.where == "settings of module outlet"
    assert WORD not in str(raised.value)


def test_a_module_that_declares_none_is_handed_the_mapping() -> None:
    module = Module("plain", connect=lambda target: target)

    assert module.settings({"a": 1}) == {"a": 1}
    assert module.manifest().settings is None


@pytest.mark.parametrize("given", [{"password": WORD, "pause_s": 2}, {}])
def test_a_look_has_its_settings_or_is_refused_for_want_of_them(given: dict[str, Any]) -> None:
    said = asyncio.run(conversation(outlet(), given, [call()]))

    assert [one["op"] for one in said][:1] == ["ready"]
    if given:
        assert (said[1]["value"], said[1]["note"]) == ("on", "Settings, 2 s, 8")
    else:
        assert (said[1]["op"], said[1]["refused"]) == ("failed", True)
        assert "missing required field `password`" in said[1]["text"]


def test_a_module_whose_settings_do_not_fit_does_not_begin() -> None:
    with pytest.raises(HapteraError, match="no setting 'pasword'"):
        asyncio.run(conversation(outlet(), {"pasword": WORD}, []))


def test_a_module_of_a_later_version_is_refused_where_it_is_written_and_by_the_daemon() -> None:
    with pytest.raises(HapteraError) as raised:
        outlet(api=API + 1).manifest()
    assert str(raised.value) == (
        f"module outlet is written for version {API + 1} of the SDK, this is {API}"
        " (install a newer haptera)"
    )
    manifest = {"name": "lamp", "version": "1", "context": "self", "looks": [], "steps": []}
    frame = {"op": "ready", "module": "lamp", "version": "1", "manifest": manifest}
    event_of(Start("lamp"), frame)
    with pytest.raises(ValueError, match="install a newer haptera") as refused:
        event_of(Start("lamp"), {**frame, "manifest": {**manifest, "api": API + 1}})
    assert str(refused.value) == (
        f"it is written for version {API + 1} of the frames, and this haptera has {API}:"
        " install a newer haptera"
    )


def test_a_module_is_told_which_version_the_daemon_speaks() -> None:
    assert begin_frame(Start("lamp"), Path("/run"))["api"] == API


def call() -> Frame:
    entity = {"kind": "node", "name": "n1", "node": "n1"}
    frame = {"op": "call", "id": 1, "work": "look", "part": "look", "entity": entity}
    rest = {"attributes": {}, "values": {}, "digest": "", "intent": None, "boot": None}
    return {**frame, **rest, "deadline_ns": None}


async def conversation(
    module: Module[Any], settings: dict[str, Any], frames: list[Frame]
) -> list[Frame]:
    """All that a host says, which was told to begin and then these, once each is answered."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    begin = {"op": "begin", "module": module.name, "settings": settings, "run_dir": "/run"}
    loop, said, reader = asyncio.get_running_loop(), list[Frame](), Frames()
    async with asyncio.timeout(WAIT_S):
        hosting = asyncio.create_task(serve(module, theirs, now=lambda: 1, wall_s=lambda: 0))
        for frame in (begin, *frames):
            await loop.sock_sendall(ours, encode_frame(frame))
        while len(said) <= len(frames) and (data := await loop.sock_recv(ours, 65_536)):
            fed = reader.feed(data)
            assert isinstance(fed, list)
            said += fed
        ours.close()
        await hosting
    return said


@dataclass(frozen=True)
class Strip:
    address: str
    password: Secret | None = None


@dataclass(frozen=True)
class Nested:
    passwords: dict[str, Secret]
    strips: list[Strip]
    spare: Strip | None = None
    plain: dict[str, str] | None = None


def test_secrets_are_known_wherever_they_are_declared() -> None:
    told = {one.name: one.secrets for one in declared(Nested)}
    assert told == {
        "passwords": ("*",),
        "strips": ("*.password",),
        "spare": ("password",),
        "plain": (),
    }
    given = {
        "passwords": {"n1": {"secret": "n1"}, "n2": WORD},
        "strips": [{"address": "a", "password": WORD}, {"address": "b"}],
        "spare": {"address": "c", "password": {"secret": "spare"}},
        "plain": {"n1": "p"},
    }
    assert open_secrets(declared(Nested), given) == ["passwords.n2", "strips.0.password"]


@dataclass(frozen=True)
class Endless:
    more: "list[Endless]"


def test_settings_without_an_end_are_refused() -> None:
    with pytest.raises(HapteraError, match="levels deep"):
        declared(Endless)


class Strip(msgspec.Struct, rename="camel"):
    port: int
    own_program: ProgramPath
    key: Secret


class Wire(NamedTuple):
    port: int
    script: HostPath


class Cable(msgspec.Struct, array_like=True):
    script: HostPath


class Hook(TypedDict):
    shell: NotRequired[Command]


Shell = NewType("Shell", Command)
Password = NewType("Password", Secret)


@dataclass(frozen=True)
class Foreign:
    """What msgspec makes settings of, in whichever way an author writes it."""

    strip: Strip
    strips: dict[str, Strip | None]
    wires: list[Wire]
    cables: tuple[Cable, ...]
    hook: Hook
    shell: Shell
    password: Password
    box: Literal["program", "shell"]


def test_code_and_secrets_are_found_in_all_that_settings_are_made_of():
    told = {one.name: (one.code, one.secrets) for one in declared(Foreign)}
    assert told == {
        "strip": (("ownProgram",), ("key",)),
        "strips": (("*.ownProgram",), ("*.key",)),
        "wires": (("*.*",), ()),
        "cables": (("*.*",), ()),
        "hook": (("shell",), ()),
        "shell": (("",), ()),
        "password": ((), ("",)),
        "box": ((), ()),
    }
