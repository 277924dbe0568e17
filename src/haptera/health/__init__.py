"""Rules on a machine's health, each a pipeline over one sensor's readings.

Uses `model/` alone. **Invariant:** pure as the core is; all times are arguments, in seconds.
"""
