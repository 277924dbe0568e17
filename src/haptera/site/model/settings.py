"""The settings that a site gives to modules, and the secrets that must not stand among them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from haptera.kinds import module
from haptera.model.declared.secrets import SECRET_DO, open_secrets
from haptera.model.errors import Code, HapteraError
from haptera.model.parts import Setting
from haptera.site.model.site import Site, SiteEntity
from haptera.site.syntax.tree import Errors

Given = Mapping[str, Any]


def settings_of(site: Site) -> Iterator[tuple[SiteEntity, Given]]:
    """All settings that are given, each with the first entity of the module that has these."""
    seen: set[tuple[str, str]] = set()
    for entity in site.entities:
        name, text = entity.entity.name, str(entity.desired.get(module.settings.name, ""))
        if entity.entity.kind == module.kind.name and text and (name, text) not in seen:
            seen.add((name, text))
            yield entity, msgspec.json.decode(text, type=dict[str, Any])


def check_secrets(site: Site, declared: Mapping[str, Iterable[Setting]]) -> None:
    """See that what modules declare to be secret is named only; its value is shown to nobody.

    Raises:
        InputError: a secret stands in the site; the message has the place of each.
    """
    errors = Errors()
    for entity, given in settings_of(site):
        for name in open_secrets(declared.get(entity.entity.name, ()), given):
            what = f"the setting {name!r} of {entity.entity.name} is a secret, given in clear text"
            error = HapteraError(what, do=SECRET_DO, code=Code.OPEN_SECRET)
            errors.add(error, site.place_of(entity, name.partition(".")[0]))
    errors.check()
