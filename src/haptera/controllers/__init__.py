"""Controllers that come with haptera: they read state and write desired state, nothing else."""

from collections.abc import Mapping
from typing import Final

# Where each is that a site may have by its name alone.
BUNDLED: Final[Mapping[str, str]] = {
    "personality": "haptera.modules.slurm.personality:controller",
    "roll": "haptera.controllers.roll.controller:controller",
}
