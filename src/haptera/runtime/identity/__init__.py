"""Identity: certificates, tokens, secrets, and files for their owner only."""
