"""Durable state: the databases, the journal and the log of events."""
