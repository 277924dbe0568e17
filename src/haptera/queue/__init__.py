"""Jobs that wait for a node: their states, their order, who gets which, and why one waits.

May use `model/` only. **Invariant:** pure as the core is; all times are arguments.
"""
