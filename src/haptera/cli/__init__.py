"""The command line; talks REST."""
