"""The page on modules: its site files are read, its packages as they are."""

import json
import re
from pathlib import Path

from haptera.cli.input.authored import authored
from haptera.kinds.module import ModuleRun
from haptera.model.declared.secrets import references
from haptera.model.entity import EntityId
from haptera.rest.schemas import SiteFile
from haptera.site import parse_site
from tests.kinds import test_brought

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/modules.md").read_text("utf-8")


def test_the_site_file_desires_what_the_page_says() -> None:
    (text,) = re.findall(r"```yaml site\n(.*?)```", PAGE, re.DOTALL)
    site = parse_site([SiteFile("site.yaml", text)], {})

    assert site.modules == ("labnode", "service", "jobs")
    wanted = {one.entity: one.desired for one in site.entities if one.entity.kind == "module"}
    assert wanted == {
        **{EntityId("module", "service", n): {"version": "1"} for n in NODES},
        **{EntityId("module", "jobs", n): {"run": ModuleRun.STOPPED} for n in NODES},
    }


NODES = ("n01", "n02")


def test_the_modules_of_ones_own_are_read() -> None:
    (text,) = re.findall(r"```yaml own\n(.*?)```", PAGE, re.DOTALL)
    site = parse_site([SiteFile("site.yaml", text)], {"site": "/srv"})

    assert (site.modules, [one.name for one in site.own]) == (("labnode",), ["outlet", "lamp"])
    keys = re.findall(r"^\| `(place|exec|context)` \|", PAGE, re.MULTILINE)
    assert keys == ["place", "exec", "context"]


def test_the_secrets_of_the_page_are_named_as_it_says() -> None:
    (text,) = re.findall(r"```yaml secrets\n(.*?)```", PAGE, re.DOTALL)
    site = parse_site([SiteFile("site.yaml", text)], {})
    (outlet,) = (one.desired["settings"] for one in site.entities)
    found = [str(one) for one in references(json.loads(str(outlet)))]

    assert found == ["file:/etc/haptera/secrets/strip.key", "strip"]


def test_the_page_shows_the_package_of_fans_as_it_is() -> None:
    root = Path(__file__).resolve().parents[2]
    (toml,) = re.findall(r"```toml fans\n(.*?)```", PAGE, re.DOTALL)
    (kind,) = re.findall(r"```python kind.py\n(.*?)```", PAGE, re.DOTALL)
    (site,) = re.findall(r"```yaml fans\n(.*?)```", PAGE, re.DOTALL)

    assert toml in (root / "examples/fans/pyproject.toml").read_text("utf-8")
    assert kind == (root / "examples/fans/src/fans/kind.py").read_text("utf-8")
    assert site == test_brought.SITE


def test_the_page_shows_the_package_of_coolant_as_it_is() -> None:
    folder = Path(__file__).resolve().parents[2] / "examples/coolant"
    (kind,) = re.findall(r"```python coolant\n(.*?)```", PAGE, re.DOTALL)
    (site,) = re.findall(r"```yaml coolant\n(.*?)```", PAGE, re.DOTALL)

    assert kind == (folder / "src/coolant/kind.py").read_text("utf-8")
    assert site == test_brought.COOLED
    (extension,) = re.findall(r"```python cooled\n(.*?)```", PAGE, re.DOTALL)
    assert extension == (folder / "src/coolant/extension.py").read_text("utf-8")
    (outlet,) = re.findall(r"```python cooled module\n(.*?)```", PAGE, re.DOTALL)
    assert outlet == test_brought.OUTLET


def test_the_settings_of_the_page_are_declared_as_it_says(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python settings.py\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "with_settings.py").write_text(code)
    told = authored(str(tmp_path / "with_settings.py")).manifest.settings

    assert told is not None
    assert [str(one) for one in told] == [
        "password: text, secret, required",
        "pause_s: number",
        "user: text",
    ]
