"""The release's own text: its section of CHANGELOG.md."""

import re
import sys


def section(changelog: str, version: str) -> str:
    """What stands below `## VERSION, DATE`, without that line."""
    found = re.search(
        rf"^## {re.escape(version)}, [^\n]*\n(.*?)(?=^## |\Z)", changelog, re.M | re.S
    )
    if found is None or not found[1].strip():
        sys.exit(
            f"release: CHANGELOG.md has no section for {version}\n"
            f"  write it with tools/changelog {version} DATE, and tag the commit that holds it"
        )
    return found[1].strip() + "\n"
