"""Secrets that stand in a site: told with their place, and never quoted."""

import asyncio

import pytest

from haptera.model.declared.secrets import SECRET_DO
from haptera.model.errors import Code, InputError
from haptera.model.parts import Context, Manifest, Setting, SettingType
from haptera.rest.schemas import SiteFile
from haptera.site import Sites, parse_site
from haptera.site.model.settings import check_secrets

SITE = """\
cluster: c
nodes:
  n1: {profiles: [old]}
  n2:
defaults:
  modules:
    lamp:
      settings: {key: {secret: lamp}}
profiles:
  old:
    modules:
      lamp:
        settings: {port: 80, key: hunter2}
modules:
  lamp: {place: "lamp:module", context: self}
  strip:
    place: strip:module
    context: parent
    settings:
      port: 80
      key: hunter3
  other: {place: "other:module", context: parent, settings: {key: hunter4}}
"""
SETTINGS = (Setting("key", SettingType.TEXT, secret=True), Setting("port"))
MANIFESTS = (
    Manifest("lamp", "1", Context.SELF, (), (), settings=SETTINGS),
    Manifest("strip", "1", Context.PARENT, (), (), settings=SETTINGS),
    Manifest("other", "1", Context.PARENT, (), ()),  # it does not say what it takes
)
DECLARED = {one.name: one.settings or () for one in MANIFESTS}
TOLD = [
    (
        "the setting 'key' of lamp is a secret, given in clear text",
        "site.yaml:13:30",
        SECRET_DO,
    ),
    (
        "the setting 'key' of strip is a secret, given in clear text",
        "site.yaml:21:7",
        SECRET_DO,
    ),
]
FILES = [SiteFile("site.yaml", SITE)]


def test_each_secret_is_told_where_it_stands() -> None:
    with pytest.raises(InputError) as raised:
        check_secrets(parse_site(FILES, {}), DECLARED)
    assert [(one.what, one.where, one.do) for one in raised.value.errors] == TOLD
    assert "hunter" not in str(raised.value)


def test_a_site_that_names_its_secrets_is_in_order() -> None:
    text = SITE.replace("hunter2", "{secret: old}").replace("hunter3", "{secret: strip}")
    check_secrets(parse_site([SiteFile("site.yaml", text)], {}), DECLARED)


def test_nothing_is_made_of_a_site_with_a_secret_in_it() -> None:
    sites = Sites("c", manifests=lambda: MANIFESTS)
    with pytest.raises(InputError, match="is a secret") as refused:
        asyncio.run(sites.read(FILES, {}))
    assert refused.value.code == Code.OPEN_SECRET
