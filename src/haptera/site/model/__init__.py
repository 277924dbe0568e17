"""What the trees of a site say."""
