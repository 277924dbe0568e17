"""Images: built from recipes or imported on the parent, signed, and kept by their digests."""
