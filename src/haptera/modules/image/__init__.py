"""Images: built from recipes on the parent, signed, and kept as files by their digests."""
