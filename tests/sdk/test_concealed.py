"""Secrets of a module's settings are in nothing that it tells: why it failed, notes, progress."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import HapteraError, Module, Refused, Secret, Target
from haptera.sdk.settings import secrets_in
from tests.sdk.test_host import a_call, hosted

PASSWORD = "sesame/open 9"
QUOTED = "sesame%2Fopen%209"
GIVEN = {"password": PASSWORD, "strips": [{"key": "opal-opal"}, {"key": "no"}]}


@dataclass
class Strip:
    key: Secret


@dataclass
class Settings:
    pause_s: float = 1.0
    password: Secret | None = None
    strips: list[Strip] = field(default_factory=list)


def module_of(_: object) -> Module[Target]:
    module: Module[Target] = Module(
        "trial", connect=lambda target: target, settings=Settings, version="7"
    )
    power = module.serves(node.power)

    @power.look(outcomes=(Power.OFF, Power.ON))
    async def look(target: Target) -> Power:
        target.note(f"as {PASSWORD}")
        if (kind := target.attributes.get("raises")) is not None:
            raise RAISED[kind](f"it said: {PASSWORD}, {QUOTED}, opal-opal and no more")
        return Power.ON

    @power.step(Power.OFF, Power.ON, within_s=1)
    async def switch_on(target: Target) -> None:
        target.progress(f"login {PASSWORD}")

    return module


RAISED = {"device": Refused, "haptera": HapteraError, "library": ValueError}


@pytest.mark.parametrize("kind", list(RAISED))
async def test_no_failure_tells_or_prints_a_secret(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with hosted(module_of=module_of) as daemon:
        await daemon.send(a_call(1, "look", "look", attributes={"raises": kind}, settings=GIVEN))
        told = await daemon.next()
    assert told["text"].endswith("it said: ***, ***, *** and no more")
    printed = capsys.readouterr().err
    assert ("Traceback" in printed) == (kind == "library")
    assert "said: ***" in printed or kind != "library"
    assert not any(secret in printed for secret in (PASSWORD, QUOTED, "opal-opal"))


async def test_no_note_and_no_progress_tells_a_secret() -> None:
    async with hosted(module_of=module_of) as daemon:
        await daemon.send(a_call(1, "look", "look", settings=GIVEN))
        assert (await daemon.next())["note"] == "as ***"
        await daemon.send(a_call(2, "step", "switch_on", settings=GIVEN))
        said = [await daemon.next(), await daemon.next()]
    assert {one.get("text") for one in said} == {"login ***", None}


@pytest.mark.parametrize("given", [{}, {"password": None}, {"strips": 7}, {"strips": [None, {}]}])
def test_settings_of_any_shape_are_searched(given: dict[str, Any]) -> None:
    declared = module_of(None).manifest().settings
    assert declared is not None
    assert secrets_in(declared, given) == ()
    # Longest first: one may be a part of another.
    assert secrets_in(declared, GIVEN) == (PASSWORD, "opal-opal", "no")
