"""What is wrong with the settings that a site gives to modules which declare theirs."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from haptera.kinds import module
from haptera.model.answers.finding import Finding, Rule
from haptera.model.declared.desired_check import nearest
from haptera.model.declared.secrets import SECRET_DO, is_reference, open_secrets
from haptera.model.deprecated import DECLARE_SETTINGS, UNDECLARED_SETTINGS
from haptera.model.parts import Manifest, Setting, SettingType
from haptera.site.model.settings import settings_of
from haptera.site.model.site import Site, SiteEntity

_TYPES: Mapping[SettingType, tuple[type, ...]] = {
    SettingType.TEXT: (str,),
    SettingType.INTEGER: (int,),
    SettingType.NUMBER: (int, float),
    SettingType.BOOLEAN: (bool,),
}


def lint_settings(
    site: Site, manifests: Iterable[Manifest]
) -> Iterator[tuple[Finding, SiteEntity]]:
    """Each fault, told of the first entity of the module that has these settings."""
    by_name = {one.name: one for one in manifests}
    for entity, given in settings_of(site):
        if (manifest := by_name.get(entity.entity.name)) is not None:
            for finding in _findings(manifest, given, str(entity.entity)):
                yield finding, entity


def _findings(manifest: Manifest, given: Mapping[str, Any], place: str) -> Iterator[Finding]:
    def found(rule: Rule, text: str, fix: str) -> Finding:
        return Finding(rule, place, text, module.kind.name, None, module.settings.name, (), fix)

    if manifest.settings is None:
        if given:
            text = f"{manifest.name} {UNDECLARED_SETTINGS}"
            yield found(Rule.UNDECLARED_SETTINGS, text, DECLARE_SETTINGS)
        return
    settings = {one.name: one for one in manifest.settings}
    for name in sorted(given.keys() - settings.keys()):
        text = f"{manifest.name} has no setting {name!r}"
        yield found(Rule.WRONG_SETTING, text, nearest(name, settings))
    for one in settings.values():
        if one.name not in given:
            if one.required:
                text = f"{manifest.name} needs the setting {one.name!r}"
                yield found(Rule.WRONG_SETTING, text, f"give it: {one}")
        elif open_secrets([one], given):
            text = f"the setting {one.name!r} of {manifest.name} is a secret, given in clear text"
            yield found(Rule.OPEN_SECRET, text, SECRET_DO)
        elif not _fits(one, given[one.name]):
            text = f"the setting {one.name!r} of {manifest.name} is no {one.type}"
            yield found(Rule.WRONG_SETTING, text, f"write one: {one}")


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
