"""What still works, and will not in a later version of the frames: in the same words everywhere."""

from typing import Final

UNDECLARED_SETTINGS: Final = (
    "is given settings and does not declare which it takes;"
    " from version 2 of the frames on that is refused"
)
DECLARE_SETTINGS: Final = "declare them: Module(settings=…), or `settings` in the manifest"
