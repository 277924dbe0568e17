"""Packages for tests, as pip installs them: a folder on the path that says what they bring."""

from pathlib import Path

import pytest


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, group: str, **places: str
) -> None:
    """Install a package with these entry points, until the test ends."""
    about = folder / f"{name}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    lines = [f"[{group}]", *(f"{key} = {place}" for key, place in places.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(folder)
