"""Switches the lights of nodes; a light is a file of this module's own."""

from haptera.sdk import PARENT, Module, Target
from leds.extension import Light, light, port


class Panel:
    """The lights of one node."""

    def __init__(self, target: Target) -> None:
        self._file = target.run_dir / f"port-{target.attributes[port.name]}"

    def lit(self) -> bool:
        return self._file.exists()

    def switch(self, to: Light) -> None:
        if to is Light.ON:
            self._file.touch()
        else:
            self._file.unlink(missing_ok=True)


module = Module("leds", connect=Panel, context=PARENT, device=port)
lights = module.serves(light)


@lights.look(every_s=2, outcomes=(Light.OFF, Light.ON))
async def look(panel: Panel) -> Light:
    return Light.ON if panel.lit() else Light.OFF


@lights.step(Light.OFF, Light.ON, within_s=5)
async def switch_on(panel: Panel) -> None:
    panel.switch(Light.ON)


@lights.step(Light.ON, Light.OFF, within_s=5)
async def switch_off(panel: Panel) -> None:
    panel.switch(Light.OFF)
