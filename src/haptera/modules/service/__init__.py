"""Services: commands that a site has run on its nodes."""
