"""Looks and steps of a declared module by programs: no shell, no secret in their words."""

import re
from dataclasses import dataclass
from typing import Any

from haptera.modules.declared.exchange import PlatformError
from haptera.modules.declared.parts import AskedEntity, value_of
from haptera.modules.declared.terms import DeclaredLook
from haptera.modules.declared.texts import filled_words, words
from haptera.sdk import HapteraError
from haptera.sdk.commands import Program, ProgramResult, clean

RUN_S_MAX = 3_600.0


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    """In which variable of its environment a program finds the token, and the settings."""

    token_in: str | None
    settings: Any

    def environment(self) -> dict[str, str]:
        """The environment variables of a program beside its search path.

        Raises:
            HapteraError: the token cannot be handed over.
        """
        token = self.settings.token
        if token is None or self.token_in is None:
            return {}
        if "\0" in token:
            raise HapteraError("the token has characters that no environment may have")
        return {self.token_in: token}

    def said(self, text: str) -> str:
        """A program's output in one line, without the token."""
        token = self.settings.token
        return words(text if not token else text.replace(token, "***"))


async def found_by(asked: AskedEntity, terms: DeclaredLook, own: ProgramSettings) -> str:
    """The value of an entity by a program's exit status or output."""
    assert terms.run is not None
    ended = await _run(asked, terms.run, own)
    if terms.exit:
        value = terms.exit.get(str(ended.status))
        if value is None:
            raise PlatformError(own.said(f"{terms.run[0]} ends with {_ending(ended)}"))
        return value
    if ended.status != 0:
        raise PlatformError(own.said(f"{terms.run[0]} ends with {_ending(ended)}"))
    text = ended.out.strip()
    if terms.match is not None:
        found = re.search(terms.match, ended.out, re.MULTILINE)
        if found is None:
            raise PlatformError(own.said(f"{terms.run[0]} prints {text!r}, without a match"))
        text = found[1]
    return value_of(text, terms, own.said)


async def run_step(asked: AskedEntity, template: list[str], own: ProgramSettings) -> None:
    """Run it; with another status than 0 nobody knows what it has done."""
    ended = await _run(asked, template, own, is_step=True)
    if ended.status != 0:
        raise PlatformError(own.said(f"{template[0]} ends with {_ending(ended)}"))


async def _run(
    asked: AskedEntity, template: list[str], own: ProgramSettings, *, is_step: bool = False
) -> ProgramResult:
    given = filled_words(template, asked.known)
    if is_step:
        asked.target.refuse_late()
    return await asked.session.run(Program(given, clean(**own.environment())), RUN_S_MAX)


def _ending(ended: ProgramResult) -> str:
    return f"status {ended.status}: {ended.last_error}"
