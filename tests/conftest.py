"""How thoroughly properties are tried: a little at the desk, more where time allows."""

import os

from hypothesis import Phase, settings

settings.register_profile("dev", max_examples=30, deadline=None)
settings.register_profile("ci", max_examples=300, deadline=None, derandomize=True)
# For planted bugs: to find one is enough, there is no need for its smallest example.
settings.register_profile(
    "hunt", max_examples=300, deadline=None, derandomize=True, phases=[Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
