"""The minOS: a kernel and an initramfs that boot a machine into haptera's agent."""
