"""What of a site can never be, and which shape site files have."""
