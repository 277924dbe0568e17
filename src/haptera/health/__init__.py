"""What sensors say of a machine's health: rules, each a pipeline over one sensor's readings.

Uses `model/` alone. **Invariant:** pure as the core is; all times are arguments, in seconds.
"""
