"""A ComputerSystem (DSP2046), as its service shows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from haptera.modules.power import PowerName
from haptera.modules.redfish.documents import Document, path_of
from haptera.modules.redfish.exchange import RedfishAnswer

_POWER: Final[dict[str, PowerName]] = {"on": "on", "off": "off"}


@dataclass(frozen=True, slots=True)
class ResetAction:
    """The action that changes the power; `allowed` is empty where the service tells none."""

    path: str
    allowed: Sequence[str]
    info_path: str | None


@dataclass(frozen=True, slots=True)
class ComputerSystem:
    """The system that an answer shows, or what has some of its members: its settings."""

    answer: RedfishAnswer
    shown: Document

    @classmethod
    def of(cls, answer: RedfishAnswer) -> "ComputerSystem":
        return cls(answer, answer.document)

    @property
    def path(self) -> str:
        return self.answer.path

    @property
    def power(self) -> PowerName | None:
        return _POWER.get((self.shown.text("PowerState") or "").lower())

    @property
    def is_machine(self) -> bool:
        """False of a board of accelerators, which is listed beside the machine that it is in."""
        return self.reset is not None or self.shown.document("Boot") is not None

    @property
    def maker(self) -> str:
        return self.shown.text("Manufacturer") or ""

    @property
    def boot_mode(self) -> str | None:
        return self.shown.text("Boot", "BootSourceOverrideMode")

    @property
    def boot_sources(self) -> Sequence[str]:
        allowable = self.shown.texts("Boot", "BootSourceOverrideTarget@Redfish.AllowableValues")
        # As the first schema called it.
        return allowable or self.shown.texts("Boot", "BootSourceOverrideSupported")

    @property
    def settings_path(self) -> str | None:
        """Where changes of it are written, if not to itself (DSP0266, *Settings resource*)."""
        return self.answer.link("@Redfish.Settings", "SettingsObject")

    @property
    def reset(self) -> ResetAction | None:
        action = self.shown.document("Actions", "#ComputerSystem.Reset")
        if action is None:
            return None
        # DSP0266, *Actions*, says which path it is; a target is there all the same.
        usual = f"{self.path.rstrip('/')}/Actions/ComputerSystem.Reset"
        info = action.link("@Redfish.ActionInfo")
        return ResetAction(
            path_of(action.link("target") or usual, self.path),
            action.texts("ResetType@Redfish.AllowableValues"),
            None if info is None else path_of(info, self.path),
        )
