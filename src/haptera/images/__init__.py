"""Images as nodes know them: what is said of one and who signed it, and how it is fetched."""
