"""Who is who: certificates, tokens, secrets, and files for their owner only."""
