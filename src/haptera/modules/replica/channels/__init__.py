"""Channels of groups: numbered messages from group to group, over a carrier that stores them."""
