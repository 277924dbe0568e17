"""What is durable: the databases, the journal and the log of events."""
