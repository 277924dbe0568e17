"""The status of one entity, and what comes next."""
