"""What every node has besides: a light, and where it is switched."""

from enum import StrEnum

from haptera.sdk import Attribute, Extension, Variable


class Light(StrEnum):
    UNKNOWN = "unknown"
    OFF = "off"
    ON = "on"


port = Attribute("node", "led.port")
light = Variable("node", "led.light", Light, {Light.UNKNOWN: 0, Light.OFF: 1, Light.ON: 2})

extension = Extension("led", variables=(light,), attributes=(port,))
