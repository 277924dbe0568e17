"""What a BMC says of itself: what somebody reads before trusting it with a machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from haptera.modules.quirks import Quirk

UNSAID: Final = "it does not say"


@dataclass(frozen=True, slots=True)
class BmcSurvey:
    """The answers of one BMC; None, or nothing, where it does not say."""

    power: str
    maker: str | None
    model: str | None
    firmware: str | None
    resets: Sequence[str]
    boot_sources: Sequence[str]
    sessions: str | None
    quirks: Sequence[Quirk]
    latency_s: float

    def rows(self) -> Sequence[tuple[str, str]]:
        """For people, a line each."""
        return (
            ("power", self.power),
            ("maker", self.maker or UNSAID),
            ("model", self.model or UNSAID),
            ("firmware", self.firmware or UNSAID),
            ("resets", ", ".join(self.resets) or UNSAID),
            ("boot sources", ", ".join(self.boot_sources) or UNSAID),
            ("sessions", self.sessions or UNSAID),
            ("quirks", ", ".join(self.quirks) or "none that is known"),
            ("latency", f"{self.latency_s * 1_000:.0f} ms for one reading of the power"),
        )
