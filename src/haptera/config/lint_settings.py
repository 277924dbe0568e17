"""What is wrong with the settings that a site gives to modules which declare theirs."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from haptera.config.site import Site, SiteEntity
from haptera.kinds import module
from haptera.model.deprecated import DECLARE_SETTINGS, UNDECLARED_SETTINGS
from haptera.model.desirable import nearest
from haptera.model.finding import Finding, Rule
from haptera.model.parts import Manifest, Setting, SettingType
from haptera.model.secrets import SECRET

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
    seen: set[tuple[str, str]] = set()
    for entity in site.entities:
        name, text = entity.entity.name, str(entity.desired.get(module.settings.name, ""))
        ours = entity.entity.kind == module.kind.name and name in by_name
        if ours and text and (name, text) not in seen:
            seen.add((name, text))
            given = msgspec.json.decode(text, type=dict[str, Any])
            for finding in _findings(by_name[name], given, str(entity.entity)):
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
        elif not _fits(one, given[one.name]):
            text = f"the setting {one.name!r} of {manifest.name} is no {one.type}"
            yield found(Rule.WRONG_SETTING, text, f"write one: {one}")
        elif one.secret and not _is_reference(given[one.name]):
            text = f"the setting {one.name!r} of {manifest.name} is a secret, and stands here"
            yield found(
                Rule.OPEN_SECRET, text, f"write {{{SECRET}: NAME}}; haptera secret set NAME"
            )


def _fits(setting: Setting, value: object) -> bool:
    if setting.type is SettingType.ANY or (value is None and not setting.required):
        return True
    if _is_reference(value):
        return setting.type is SettingType.TEXT
    # To Python true is a number, too.
    is_boolean = isinstance(value, bool)
    if is_boolean or setting.type is SettingType.BOOLEAN:
        return is_boolean and setting.type is SettingType.BOOLEAN
    return isinstance(value, _TYPES[setting.type])


def _is_reference(value: object) -> bool:
    return isinstance(value, dict) and SECRET in value
