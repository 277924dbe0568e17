"""How it looks as bytes: pure codecs, no sockets."""
