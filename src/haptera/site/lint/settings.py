"""What is wrong with the settings that a site gives to modules which declare theirs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from haptera.kinds import module
from haptera.model.answers.finding import Finding, Rule
from haptera.model.declared.desired_check import nearest
from haptera.model.declared.meaning import looks_like_code
from haptera.model.declared.secrets import (
    SECRET_DO,
    is_reference,
    open_secrets,
    references,
    resolved,
)
from haptera.model.deprecated import DECLARE_SETTINGS, UNDECLARED_SETTINGS
from haptera.model.errors import HapteraError
from haptera.model.parts import Manifest, Setting, SettingType
from haptera.site.model.settings import settings_of
from haptera.site.model.site import Site
from haptera.site.syntax.tree import Place

_TYPES: Mapping[SettingType, tuple[type, ...]] = {
    SettingType.TEXT: (str,),
    SettingType.INTEGER: (int,),
    SettingType.NUMBER: (int, float),
    SettingType.BOOLEAN: (bool,),
}
# A stand-in for a secret, which is not known here.
_ANY_SECRET: Final = "secret"
_SEE: Final = "see the page of the module"
Maker = Callable[[Mapping[str, Any]], object]
# The rule, the message, and what to do.
_Wrong = tuple[Rule, str, str]


def lint_settings(
    site: Site, manifests: Iterable[Manifest], makers: Mapping[str, Maker]
) -> Iterator[tuple[Finding, Place]]:
    """Each fault, and where the site gives the setting, to the first entity that has these.

    `makers` make the settings of the modules whose code is here, and refuse what they cannot be.
    """
    by_name = {one.name: one for one in manifests}
    for entity, given in settings_of(site):
        if (manifest := by_name.get(entity.entity.name)) is not None:
            wrong = [*_wrong_settings(manifest, given)]
            if not any(rule is Rule.WRONG_SETTING for _, (rule, *_) in wrong):
                wrong += _refused(makers.get(manifest.name), given)
            for setting, (rule, text, fix) in wrong:
                told = (module.kind.name, None, module.settings.name, (), fix)
                yield Finding(rule, str(entity.entity), text, *told), site.place_of(entity, setting)


def _wrong_settings(manifest: Manifest, given: Mapping[str, Any]) -> Iterator[tuple[str, _Wrong]]:
    """The faults of settings, each with the name of one."""
    if manifest.settings is None:
        if given:
            text = f"{manifest.name} {UNDECLARED_SETTINGS}"
            yield min(given), (Rule.UNDECLARED_SETTINGS, text, DECLARE_SETTINGS)
        return
    settings = {one.name: one for one in manifest.settings}
    for name in sorted(given.keys() - settings.keys()):
        text = f"{manifest.name} has no setting {name!r}"
        yield name, (Rule.WRONG_SETTING, text, nearest(name, settings))
    for one in settings.values():
        if one.name not in given and one.required:
            text = f"{manifest.name} needs the setting {one.name!r}"
            yield one.name, (Rule.WRONG_SETTING, text, f"give it: {one}")
        elif one.name in given and (wrong := _wrong(manifest.name, one, given)) is not None:
            yield one.name, wrong


def _refused(maker: Maker | None, given: Mapping[str, Any]) -> Iterator[tuple[str, _Wrong]]:
    """The module's own objection to settings whose types are right."""
    if maker is None or not given:
        return
    try:
        maker(resolved(given, dict.fromkeys(references(given), _ANY_SECRET)))
    except HapteraError as error:
        yield (
            min(given),
            (Rule.WRONG_SETTING, f"it refuses its settings: {error.what}", error.do or _SEE),
        )


def _wrong(of: str, one: Setting, given: Mapping[str, Any]) -> _Wrong | None:
    """What is wrong with a setting of this module that is given, and what to do."""
    named = f"the setting {one.name!r} of {of}"
    if open_secrets([one], given):
        return Rule.OPEN_SECRET, f"{named} is a secret, given in clear text", SECRET_DO
    if not _fits(one, given[one.name]):
        return Rule.WRONG_SETTING, f"{named} is no {one.type}", f"write one: {one}"
    if _may_be_code(one):
        do = "if it is run or opened, declare it in the module as Command or HostPath, say"
        return Rule.UNDECLARED_CODE, f"scope write may change {named}", do
    return None


def _may_be_code(setting: Setting) -> bool:
    is_text = setting.type in (SettingType.TEXT, SettingType.ANY)
    declared = setting.code or setting.secret or setting.secrets
    return is_text and not declared and looks_like_code(setting.name)


def _fits(setting: Setting, value: object) -> bool:
    if setting.type is SettingType.ANY or (value is None and not setting.required):
        return True
    if is_reference(value):
        return setting.type is SettingType.TEXT
    # To Python true is a number, too.
    is_boolean = isinstance(value, bool)
    if is_boolean or setting.type is SettingType.BOOLEAN:
        return is_boolean and setting.type is SettingType.BOOLEAN
    return isinstance(value, _TYPES[setting.type])
