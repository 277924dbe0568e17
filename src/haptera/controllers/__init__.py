"""Controllers that come with haptera: they read state and write desired state, nothing else.

`personality` alone also tells Slurm which image its nodes run (decision 50).
"""

from collections.abc import Mapping
from typing import Final

# Where each is that a site may have by its name alone.
BUNDLED: Final[Mapping[str, str]] = {
    "personality": "haptera.modules.slurm.personality:controller",
    "roll": "haptera.controllers.roll.controller:controller",
}
