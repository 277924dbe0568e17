"""What a site changes of what is in force, and what is in force as a site."""
