"""BGP-4 (RFC 4271) as far as a route reflector of IPv4 needs it: messages, and a session."""
