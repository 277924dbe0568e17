"""Says a number 100 times a second, one more each time, beginning where it is started with one."""

from haptera.app.channels import Channels

EVERY_S = 0.01

with Channels.of_environment() as channels:
    channels.start()
    number = 0
    while True:
        number += 1
        channels.emit(b"%d" % number)
        channels.next(within_s=EVERY_S)  # it hears nothing, and waits
