"""Installed packages bring verbs, and controllers of a site, besides kinds and modules."""

from functools import partial

import click
import pytest

from haptera.cli.main import OK, REFUSED, run
from haptera.kinds.brought import CONTROLLERS_GROUP, VERBS_GROUP
from haptera.model.errors import HapteraError
from haptera.rest.schemas import SiteFile
from haptera.site.model.site import parse_site
from tests import packages


@click.command()
def light() -> None:
    """Say where the light is on."""
    click.echo("n3")


NONE = "not a verb"


@pytest.fixture
def install(monkeypatch, tmp_path):
    """Install a package with these entry points."""
    return partial(packages.install, tmp_path, monkeypatch)


def test_a_verb_of_a_package_is_typed_like_any_other(install, capsys):
    install("leds", VERBS_GROUP, light=f"{__name__}:light", status=f"{__name__}:light")
    assert (run(["light"]), capsys.readouterr().out) == (OK, "n3\n")
    run(["--help"])
    assert "Of packages:" in (told := capsys.readouterr().out)
    assert "Say where the light is on" in told
    # It replaces none of haptera's own.
    run(["status", "--help"])
    assert "Show the state of the cluster" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (f"{__name__}:NONE", "is no Command but str"),
        ("nowhere:at_all", "cannot be imported: ModuleNotFoundError"),
    ],
)
def test_a_verb_that_is_none_is_refused_with_its_package(install, capsys, place, told):
    install("leds", VERBS_GROUP, light=place)
    assert run(["light"]) == REFUSED
    error = capsys.readouterr().err
    assert (told in error, "of leds 1" in error) == (True, True)
    assert run(["--help"]) == OK


def test_a_controller_of_a_package_is_had_by_its_name_alone(install):
    text = "cluster: quick\ncontrollers: {care: {settings: {every_s: 5}}}\n"
    with pytest.raises(HapteraError, match="its place is not given"):
        one_site(text)
    install("careful", CONTROLLERS_GROUP, care="careful.care:controller")
    [care] = [one for one in one_site(text).controllers if one.name == "care"]
    assert (care.place, care.settings) == ("careful.care:controller", {"every_s": 5})
    install("other", CONTROLLERS_GROUP, care="other.care:controller")
    with pytest.raises(HapteraError, match="2 packages bring 'care'"):
        one_site(text)


def one_site(text):
    return parse_site([SiteFile("site.yaml", text)], {})
