"""Jobs that wait for a node: their states, their order, who gets which, and why one waits.

Uses `model/`, and of `kinds/` the attributes of nodes. **Invariant:** pure as the core is; all
times are arguments.
"""
