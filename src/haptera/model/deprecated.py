"""What still works, and will not in a later version of the frames: in the same words everywhere."""

from typing import Final

UNDECLARED_GO: Final = "from version 2 of the frames on that is refused"
UNDECLARED_SETTINGS: Final = (
    f"is given settings and does not declare which it takes; {UNDECLARED_GO}"
)
DECLARE_SETTINGS: Final = "declare them: Module(settings=…), or `settings` in the manifest"
