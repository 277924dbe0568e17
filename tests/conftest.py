"""How thoroughly properties are tried, and that what tests start can be interrupted."""

import os
import signal

from hypothesis import Phase, settings

settings.register_profile("dev", max_examples=30, deadline=None)
settings.register_profile("ci", max_examples=300, deadline=None, derandomize=True)
# For planted bugs: to find one is enough, there is no need for its smallest example.
settings.register_profile(
    "hunt", max_examples=300, deadline=None, derandomize=True, phases=[Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# A shell has what it starts in the background ignore interrupts, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
